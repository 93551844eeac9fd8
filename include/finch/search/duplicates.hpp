#pragma once

#include "finch/search/population.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace finch::search {

/// Treatment of a bred genome that an individual already has. breed: breed another; reuse: take that individual's
/// result; train: train it again.
enum class Duplicates { breed, reuse, train };
constexpr std::array<std::string_view, 3> words_of(Duplicates) {
    return {"breed", "reuse", "train"};
}

/// Known genomes in a row before one is trained again, so that a search of a small space ends.
inline constexpr int most_known_in_a_row = 100;

/// Whether equal genomes are more than a coincidence: no gene that is always active has a continuum of values.
[[nodiscard]] bool can_repeat(const Space& space);

/// Finds individuals by their genomes in sets of them or of pointers to them.
struct GenomeHash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(const Genome& genome) const noexcept;
    [[nodiscard]] std::size_t operator()(const Individual& one) const noexcept { return (*this)(one.genome); }
    [[nodiscard]] std::size_t operator()(const Individual* one) const noexcept { return (*this)(one->genome); }
};
struct SameGenome {
    using is_transparent = void;
    template <class A, class B>
    [[nodiscard]] bool operator()(const A& a, const B& b) const {
        return genome_of(a) == genome_of(b);
    }

private:
    [[nodiscard]] static const Genome& genome_of(const Genome& genome) { return genome; }
    [[nodiscard]] static const Genome& genome_of(const Individual& one) { return one.genome; }
    [[nodiscard]] static const Genome& genome_of(const Individual* one) { return one->genome; }
};

/// Results of other runs by their genomes in the space of this one, without learning curves: half a KiB each.
class OtherResults {
public:
    /// `genome`: canonical, in the space of this run. Of equal genomes the first that is added stays. `of_run`: whose
    /// individual `one` is, unless that itself has its result from elsewhere. Not what is_reusable() refuses.
    void add(Genome genome, Individual one, std::uint64_t of_run);
    /// An individual with that genome whose reused_from and reused_run say whose result it is; null if there is none.
    [[nodiscard]] const Individual* find(const Genome& genome) const;
    [[nodiscard]] const auto& all() const noexcept { return results_; }
    /// Adds an entry that another leader's copy has in all().
    void add(Individual known) { results_.insert(std::move(known)); }
    /// Removes the results of `run`.
    void forget(std::uint64_t run);

private:
    std::unordered_set<Individual, GenomeHash, SameGenome> results_;
};

/// Whether the result of `one`, an individual of another run, is that of its genes alone: a complete or a diverged
/// training that began with no other's weights, and no repeat. What was pruned was so in comparison with others there;
/// what failed, had no memory or was stopped may well succeed here.
[[nodiscard]] bool is_reusable(const Individual& one);

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
    using Set = std::unordered_set<const Individual*, GenomeHash, SameGenome>;  ///< 8 bytes and a node each

    Set ended_;
    Set in_training_;
    std::size_t seen_ = 0;  ///< changes
};

/// `individual` with the result of `twin`, which has the same genome and whose training has ended: no training of its
/// own, at `unix_seconds`.
[[nodiscard]] Individual with_result_of(Individual individual, const Individual& twin, double unix_seconds);

}  // namespace finch::search
