#pragma once

#include "finch/search/population.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace finch::search {

/// The treatment of a newly bred genome that an existing individual already has. breed: another genome is bred. reuse:
/// the new individual gets the result of the existing one. train: the genome is trained again.
enum class Duplicates { breed, reuse, train };
constexpr std::array<std::string_view, 3> words_of(Duplicates) {
    return {"breed", "reuse", "train"};
}

/// After this many known genomes in a row, a known genome is trained again. A search of a small space therefore ends.
inline constexpr int most_known_in_a_row = 100;

/// Returns whether breeding may well produce equal genomes: true if every gene that is always active is discrete.
[[nodiscard]] bool can_repeat(const Space& space);

/// Hashes an individual by its genome, so that sets of individuals, or of pointers to them, can be searched for a
/// genome.
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

/// Results of other runs, found by their genome in the space of this run. Learning curves are left out, so a result
/// takes half a KiB.
class OtherResults {
public:
    /// Adds the result of `one`, which must satisfy is_reusable(). `genome`: the canonical genome in the space of this
    /// run. An existing entry with the same genome is kept. `of_run`: the run that trained `one`, ignored if `one`
    /// itself reuses the result of another run.
    void add(Genome genome, Individual one, std::uint64_t of_run);
    /// Returns the individual with this genome, or null. The members reused_from and reused_run of the returned
    /// individual name the individual and the run that produced the result.
    [[nodiscard]] const Individual* find(const Genome& genome) const;
    [[nodiscard]] const auto& all() const noexcept { return results_; }
    /// Adds an entry from all() of another leader's OtherResults.
    void add(Individual known) { results_.insert(std::move(known)); }
    /// Removes the results of `run`.
    void forget(std::uint64_t run);

private:
    std::unordered_set<Individual, GenomeHash, SameGenome> results_;
};

/// Returns whether the result of `one`, an individual of another run, depends on its genes alone and can be reused
/// here. The training of `one` must be complete or diverged and must have begun without inherited weights. Repeats, and
/// copies of a result of the same run, are not reusable. Pruned individuals are not reusable because they were compared
/// with others of their run. Failed, out-of-memory and stopped trainings are not reusable because they may succeed
/// here.
[[nodiscard]] bool is_reusable(const Individual& one);

/// The individuals of an island, found by their genome. Individuals with any outcome are included, and individuals in
/// training as far as the population knows them. Heirs are left out, because their results depend on other genomes too.
/// Keeps pointers into the population, which must outlive this object.
class KnownGenomes {
public:
    /// Adds all individuals of `island` that `population` knows now. Individuals in training are included only if
    /// `with_training`. All calls must use the same population and island.
    void update(const Population& population, int island, bool with_training);
    /// Returns an individual with the canonical genome `genome`, or null. Among several individuals with this genome,
    /// prefers one with ended training, then one with a result of its own, then one that did not fail, then the
    /// smallest id.
    [[nodiscard]] const Individual* find(const Genome& genome) const;

private:
    using Set = std::unordered_set<const Individual*, GenomeHash, SameGenome>;  ///< 8 bytes and a node per individual

    Set ended_;
    Set in_training_;
    std::size_t seen_ = 0;  ///< number of changes of the island that were read
};

/// Returns `individual` with the result of `twin`, without a training of its own. `unix_seconds`: the end time of
/// `individual`. `twin` must have the same genome, and its training must have ended.
[[nodiscard]] Individual with_result_of(Individual individual, const Individual& twin, double unix_seconds);

}  // namespace finch::search
