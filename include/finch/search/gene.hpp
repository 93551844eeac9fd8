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

/// A real value in [low, high]; with Scale::log it is uniform in its logarithm (low > 0).
struct RealGene {
    double low = 0;
    double high = 1;
    Scale scale = Scale::linear;
    double step = 0;  ///< above 0: the values are low + k·step (linear only); 0: any value
    bool operator==(const RealGene&) const = default;
};

/// A whole number low + k·step in [low, high], low included; with Scale::log it is uniform in its logarithm, rounded
/// (low > 0).
struct IntGene {
    std::int64_t low = 0;
    std::int64_t high = 1;
    Scale scale = Scale::linear;
    std::int64_t step = 1;  ///< above 0
    bool operator==(const IntGene&) const = default;
};

/// One of several words or numbers, kept as they stand in the configuration.
struct ChoiceGene {
    std::vector<std::string> options;
    bool ordered = false;  ///< neighbours are alike, so that an operator may move from one to the next
    /// Its only option is a number, which JSON carries as one, digit by digit; not recorded in archives.
    bool is_number = false;
    bool operator==(const ChoiceGene&) const = default;
};

/// Condition on another gene: it is active, and has one of these values.
struct Condition {
    std::size_t gene = 0;  ///< index in the space
    std::vector<double> values{};
    bool negated = false;  ///< it asks for the opposite
    bool operator==(const Condition&) const = default;
};

struct Gene {
    std::string name;
    std::variant<RealGene, IntGene, ChoiceGene> kind;
    std::vector<Condition> when{};  ///< it is active where all of them hold; they make no cycle
    /// The gene has an effect if all conditions of one of these lists hold; always if there are no lists. A gene of a
    /// `when` is active if its own `when` holds, whatever its uses.
    std::vector<std::vector<Condition>> uses{};
    bool operator==(const Gene&) const = default;
};

/// A genome has one value per gene, in the space's order: a real value, a whole number, or the index of a choice.
using Genome = std::vector<double>;

/// The genes of a search, in the order of the configuration. Plain data.
struct Space {
    std::vector<Gene> genes;

    [[nodiscard]] std::size_t size() const noexcept { return genes.size(); }
    /// Index of the gene called `name`, or -1.
    [[nodiscard]] int index_of(const std::string& name) const noexcept;
    /// Whether any gene is active only at times.
    [[nodiscard]] bool has_conditions() const noexcept;
    /// Whether every value is one of its gene's.
    [[nodiscard]] bool contains(const Genome& genome) const noexcept;
    bool operator==(const Space&) const = default;
};

/// Whether there is but one value, so that nothing is to be searched.
[[nodiscard]] bool is_fixed(const Gene& gene) noexcept;
/// How many values there are; nothing for a real gene without a step.
[[nodiscard]] std::optional<std::uint64_t> value_count(const Gene& gene) noexcept;
/// The low bound, or the first option.
[[nodiscard]] double first_value(const Gene& gene) noexcept;
/// The value of `gene` that is nearest to `x`; of a choice, the option of the nearest index. NaN gives the first.
[[nodiscard]] double snap(const Gene& gene, double x) noexcept;

/// Position of `value` in [0, 1], even in the gene's scale: 0 and 1 are the bounds of a real gene; value k of n even
/// values is (k + ½)/n; a fixed one is ½. from_unit(to_unit(value)) is value, for a real gene without a step up to
/// rounding.
[[nodiscard]] double to_unit(const Gene& gene, double value) noexcept;
/// The value at `u` in [0, 1]; uniform u give random values. Beyond, the nearest.
[[nodiscard]] double from_unit(const Gene& gene, double u) noexcept;
/// The u for which from_unit() gives `value`, from `low` to `high`: of a real gene without a step a point, else as wide
/// as the value is likely.
struct UnitCell {
    double low = 0;
    double high = 1;
};
[[nodiscard]] UnitCell unit_cell(const Gene& gene, double value) noexcept;

/// A uniformly random value of `gene` (in the logarithm for Scale::log).
[[nodiscard]] double random_value(const Gene& gene, RandomStream& random);
/// A random value in place of `value`: of an ordered choice every other time a neighbour, else any.
[[nodiscard]] double mutate_value(const Gene& gene, double value, RandomStream& random);
/// Moves `value` by `ranges` times the gene's range (for Scale::log, the range of its logarithm) and clamps it. A
/// discrete value is rounded and moves by at least one step. An unordered choice stays.
[[nodiscard]] double move_value(const Gene& gene, double value, double ranges) noexcept;

/// Uniform in every gene, canonical.
[[nodiscard]] Genome random_genome(const Space& space, RandomStream& random);

/// Whether `condition` holds in `genome`, whose active genes are known.
[[nodiscard]] bool holds(const Condition& condition, const Genome& genome, const std::vector<bool>& active) noexcept;
/// The active genes of `genome`: those whose conditions all hold and that have an effect.
[[nodiscard]] std::vector<bool> active_genes(const Space& space, const Genome& genome);
/// `genome` with every gene that is not active at its first value, so that genomes that mean the same training are
/// equal.
[[nodiscard]] Genome canonical(const Space& space, Genome genome);
/// `genome` with those of its active genes drawn anew that `chosen` does not name, canonical: a gene that has come to
/// be active has no value of its own yet.
[[nodiscard]] Genome draw_missing(const Space& space, Genome genome, std::vector<bool> chosen, RandomStream& random);

/// A value as a configuration would say it: "relu", "6", "0.00316" (shortest text that reads back to the same bits).
[[nodiscard]] std::string value_text(const Gene& gene, double value);

/// "lr = 0.003162, activation = relu": for people, so real values with four digits, and active genes only.
[[nodiscard]] std::string genome_text(const Space& space, const Genome& genome);

/// The value that `text` means for `gene`, if it is one of its values.
[[nodiscard]] std::optional<double> value_in(const Gene& gene, const std::string& text);
/// The same. Throws ConfigError that names the gene and what it accepts.
[[nodiscard]] double parse_value(const Gene& gene, const std::string& text);
/// "a whole number in [2, 10]", "one of relu, tanh".
[[nodiscard]] std::string accepted_values(const Gene& gene);

}  // namespace finch::search
