#pragma once

#include "finch/base/random.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace finch::search {

enum class Scale { linear, log };
constexpr std::array<std::string_view, 2> words_of(Scale) {
    return {"linear", "log"};
}

/// A gene with real values in [low, high]. With Scale::log (low > 0), the logarithm of the value is uniformly
/// distributed.
struct RealGene {
    double low = 0;
    double high = 1;
    Scale scale = Scale::linear;
    double step = 0;  ///< above 0: the values are low + k·step (linear scale only); 0: any value
    bool operator==(const RealGene&) const = default;
};

/// A gene with integer values low + k·step in [low, high], including low. With Scale::log (low > 0), the logarithm of
/// the value is uniformly distributed before rounding.
struct IntGene {
    std::int64_t low = 0;
    std::int64_t high = 1;
    Scale scale = Scale::linear;
    std::int64_t step = 1;  ///< above 0
    bool operator==(const IntGene&) const = default;
};

/// A gene with several words or numbers as options, kept as they are written in the configuration.
struct ChoiceGene {
    std::vector<std::string> options;
    bool ordered = false;  ///< neighbouring options are similar, so operators may move from one to the next
    /// True if the only option is a number that JSON output must write as a number, digit for digit. This flag is not
    /// stored in archives.
    bool is_number = false;
    bool operator==(const ChoiceGene&) const = default;
};

/// A condition on another gene. The condition holds if that gene is active and has one of `values`.
struct Condition {
    std::size_t gene = 0;  ///< index of the other gene in the space
    std::vector<double> values{};
    bool negated = false;  ///< if true, the condition holds in the opposite case
    bool operator==(const Condition&) const = default;
};

struct Gene {
    std::string name;
    std::variant<RealGene, IntGene, ChoiceGene> kind;
    std::vector<Condition> when{};  ///< the gene is active if all of them hold; without cycles
    /// Lists of conditions under which the gene has an effect: all conditions of one list must hold. A gene without
    /// such lists always has an effect. In a `when` condition, another gene counts as active if its `when` holds,
    /// regardless of its `uses`.
    std::vector<std::vector<Condition>> uses{};
    bool operator==(const Gene&) const = default;
};

/// A genome: one value per gene, in the order of the space. The value of a gene is a real number, an integer, or the
/// index of an option.
using Genome = std::vector<double>;

/// The genes of a search, in the order of the configuration. Plain data.
struct Space {
    std::vector<Gene> genes;

    [[nodiscard]] std::size_t size() const noexcept { return genes.size(); }
    /// Returns the index of the gene called `name`, or -1.
    [[nodiscard]] int index_of(const std::string& name) const noexcept;
    /// Returns whether any gene can be inactive.
    [[nodiscard]] bool has_conditions() const noexcept;
    /// Returns whether each value of `genome` is valid for its gene.
    [[nodiscard]] bool contains(const Genome& genome) const noexcept;
    bool operator==(const Space&) const = default;
};

/// Returns whether the gene has only one value, so there is nothing to search.
[[nodiscard]] bool is_fixed(const Gene& gene) noexcept;
/// Returns the number of values of the gene, or nothing for a real gene without a step.
[[nodiscard]] std::optional<std::uint64_t> value_count(const Gene& gene) noexcept;
/// Returns the lower bound of the gene, or the index of its first option.
[[nodiscard]] double first_value(const Gene& gene) noexcept;
/// Returns the value of `gene` that is nearest to `x`. For a choice, `x` is compared with the indices of the options.
/// If `x` is NaN, returns the first value.
[[nodiscard]] double snap(const Gene& gene, double x) noexcept;

/// Returns the position of `value` in [0, 1], uniform in the gene's scale. The bounds of a real gene have the positions
/// 0 and 1. Value k of n equidistant values has the position (k + ½)/n, and the value of a fixed gene ½.
/// from_unit(to_unit(value)) returns `value`, up to rounding for a real gene without a step.
[[nodiscard]] double to_unit(const Gene& gene, double value) noexcept;
/// Returns the value at position `u`, which is clamped to [0, 1]. A uniformly random `u` gives a random value of the
/// gene.
[[nodiscard]] double from_unit(const Gene& gene, double u) noexcept;

/// Returns a uniformly random value of `gene`; for Scale::log, uniform in the logarithm.
[[nodiscard]] double random_value(const Gene& gene, RandomStream& random);
/// Returns a random value to replace `value`. For an ordered choice, the new value is a neighbour of `value` with
/// probability ½.
[[nodiscard]] double mutate_value(const Gene& gene, double value, RandomStream& random);
/// Moves `value` by `ranges` times the gene's range (for Scale::log, the range of its logarithm) and clamps it. A
/// discrete value is rounded and moves by at least one step. The value of an unordered choice does not change.
[[nodiscard]] double move_value(const Gene& gene, double value, double ranges) noexcept;

/// Returns a canonical genome with uniformly random values.
[[nodiscard]] Genome random_genome(const Space& space, RandomStream& random);

/// Returns whether `condition` holds in `genome`. `active`: the active genes of `genome`.
[[nodiscard]] bool holds(const Condition& condition, const Genome& genome, const std::vector<bool>& active) noexcept;
/// Returns which genes of `genome` are active. An active gene has an effect, and all conditions of its `when` hold.
[[nodiscard]] std::vector<bool> active_genes(const Space& space, const Genome& genome);
/// Returns `genome` with all inactive genes set to their first value. Genomes that describe the same training are then
/// equal.
[[nodiscard]] Genome canonical(const Space& space, Genome genome);
/// Draws random values for the active genes of `genome` that are not marked in `chosen`, and returns the canonical
/// genome. A gene that has just become active has no value of its own yet.
[[nodiscard]] Genome draw_missing(const Space& space, Genome genome, std::vector<bool> chosen, RandomStream& random);

/// Returns a value as text, as in a configuration: "relu", "6", "0.00316". A real number is written by number_text(),
/// so that PyYAML reads it as a number.
[[nodiscard]] std::string value_text(const Gene& gene, double value);

/// Returns `genome` as text for people: "lr = 0.003162, activation = relu". Real values have four digits, and inactive
/// genes are left out.
[[nodiscard]] std::string genome_text(const Space& space, const Genome& genome);

/// Returns the value of `gene` that `text` denotes, or nothing if `text` denotes none.
[[nodiscard]] std::optional<double> value_in(const Gene& gene, const std::string& text);
/// Like value_in(), but throws ConfigError with the gene's name and its accepted values instead of returning nothing.
[[nodiscard]] double parse_value(const Gene& gene, const std::string& text);
/// Returns a description of the accepted values: "a whole number in [2, 10]", "one of relu, tanh".
[[nodiscard]] std::string accepted_values(const Gene& gene);

}  // namespace finch::search
