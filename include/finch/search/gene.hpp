#pragma once

#include "finch/base/random.hpp"

#include <array>
#include <cstdint>
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
    bool operator==(const RealGene&) const = default;
};

/// A whole number in [low, high], both included.
struct IntGene {
    std::int64_t low = 0;
    std::int64_t high = 1;
    bool operator==(const IntGene&) const = default;
};

/// One of several words or numbers, kept as they stand in the configuration.
struct ChoiceGene {
    std::vector<std::string> options;
    bool operator==(const ChoiceGene&) const = default;
};

struct Gene {
    std::string name;
    std::variant<RealGene, IntGene, ChoiceGene> kind;
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
    /// Whether every value lies within its gene's bounds and is whole where it must be.
    [[nodiscard]] bool contains(const Genome& genome) const noexcept;
    bool operator==(const Space&) const = default;
};

/// A uniformly random value of `gene` (in the logarithm for Scale::log).
[[nodiscard]] double random_value(const Gene& gene, RandomStream& random);
[[nodiscard]] Genome random_genome(const Space& space, RandomStream& random);

/// A value as a configuration would say it: "relu", "6", "0.00316" (shortest text that reads back to the same bits).
[[nodiscard]] std::string value_text(const Gene& gene, double value);

/// "lr = 0.003162, activation = relu": for people, so real values with four digits.
[[nodiscard]] std::string genome_text(const Space& space, const Genome& genome);

/// The value that `text` means for `gene`. Throws ConfigError that names the gene and what it accepts.
[[nodiscard]] double parse_value(const Gene& gene, const std::string& text);

}  // namespace finch::search
