#pragma once

#include "finch/search/population.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <unordered_set>

namespace finch::search {

/// What becomes of a genome that is bred although an individual has it already: breed, another is bred; reuse, it gets
/// the result of that individual; train, it is trained again.
enum class Duplicates { breed, reuse, train };
constexpr std::array<std::string_view, 3> words_of(Duplicates) {
    return {"breed", "reuse", "train"};
}

/// So many genomes in a row may be known before one is trained again, so that a search of a small space ends.
inline constexpr int most_known_in_a_row = 100;

/// Whether equal genomes are more than a coincidence: no gene that is always active has a continuum of values.
[[nodiscard]] bool can_repeat(const Space& space);

/// The individuals of an island by their genomes: those whose training has ended, whatever its outcome, and those in
/// training as far as the population knows of them. Points into the population, which outlives it.
class KnownGenomes {
public:
    /// With all that `population` knows of `island` by now, but those in training unless `with_training`. Always the
    /// same population and island.
    void update(const Population& population, int island, bool with_training);
    /// The individual that has `genome`, canonical; null if none has. Of several one whose training has ended; of these
    /// one whose result is its own, then one that did not fail, then the smallest id.
    [[nodiscard]] const Individual* find(const Genome& genome) const;

private:
    struct Hash {
        using is_transparent = void;
        [[nodiscard]] std::size_t operator()(const Genome& genome) const noexcept;
        [[nodiscard]] std::size_t operator()(const Individual* one) const noexcept { return (*this)(one->genome); }
    };
    struct Equal {
        using is_transparent = void;
        [[nodiscard]] bool operator()(const Individual* a, const Individual* b) const { return a->genome == b->genome; }
        [[nodiscard]] bool operator()(const Individual* a, const Genome& b) const { return a->genome == b; }
        [[nodiscard]] bool operator()(const Genome& a, const Individual* b) const { return a == b->genome; }
    };
    using Set = std::unordered_set<const Individual*, Hash, Equal>;  ///< 8 bytes and a node each

    Set ended_;
    Set in_training_;
    std::size_t seen_ = 0;  ///< changes
};

/// `individual` with the result of `twin`, which has the same genome and whose training has ended: no training of its
/// own, at `unix_seconds`.
[[nodiscard]] Individual with_result_of(Individual individual, const Individual& twin, double unix_seconds);

}  // namespace finch::search
