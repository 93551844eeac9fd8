#pragma once

#include "finch/search/propagator.hpp"

#include "additive_model.hpp"
#include "cma_es.hpp"
#include "durations.hpp"
#include "fold_plan.hpp"
#include "unit_genome.hpp"

#include <cstdint>
#include <vector>

namespace finch::search {

/// The properties of a search with EvolutionOptions that are known at its start.
using EvolutionPlan = FoldPlan<EvolutionOptions>;

/// The population of differential evolution in one phase of a search.
class DifferentialEvolution {
public:
    /// `evaluations`: the approximate number of evaluations of the phase. The population starts in the whole unit cube,
    /// or around `centre` if there is one.
    DifferentialEvolution(const Space& space, double evaluations, UnitGenome centre);

    struct Member {
        UnitGenome point;
        double loss = 0;
        Id id;                  ///< the individual with these genes
        std::int32_t slot = 0;  ///< from the id of the individual that founded the slot
    };
    /// Takes over `members`, best first.
    DifferentialEvolution(const Space& space, std::vector<Member> members);

    [[nodiscard]] bool is_filled() const noexcept { return is_filled_; }
    [[nodiscard]] std::size_t first_size() const noexcept { return size_; }
    [[nodiscard]] UnitGenome first_point(const Space& space, RandomStream& random) const;
    /// Breeds a trial for a slot by the strategy current-to-pbest/1/bin.
    [[nodiscard]] Offspring trial(const Space& space, RandomStream& random) const;
    /// Breeds a mutant for a slot: one member, or a uniform crossover of two members, with about one gene changed.
    [[nodiscard]] Offspring mutant(const Space& space, RandomStream& random) const;
    /// Breeds a child for a slot: a member with some genes redrawn from `model`. Each child draws its own number of
    /// redrawn genes, and of tries per gene.
    [[nodiscard]] Offspring modelled(const Space& space, const AdditiveModel& model, RandomStream& random) const;
    /// Adds a result. `done`: the used fraction of the phase's budget. `random` decides which points are dropped from
    /// the archive.
    void take(Member member, const Breeding& breeding, double done, RandomStream& random);
    /// Adds a member that comes from another source, unless its point is already in the population. The new member
    /// replaces the member `instead`. If `instead` does not exist and the population is full, the new member replaces
    /// the worst member, but only if it is better.
    void inject(Member member, Id instead = {});
    [[nodiscard]] const std::vector<Member>& members() const noexcept { return members_; }

private:
    struct Success {
        double scale_factor = 0;
        double crossover_rate = 0;
        double gain = 0;
    };

    /// Mutates one gene if a member with the same genome exists.
    void vary_copy(const Space& space, UnitGenome& point, RandomStream& random) const;
    void insert(Member member);
    void learn();
    void shrink(double done);

    std::vector<Member> members_;  ///< best first
    std::vector<UnitGenome> archive_;
    std::vector<double> scale_factors_;    ///< M_F of the paper
    std::vector<double> crossover_rates_;  ///< M_CR of the paper
    std::size_t memory_at_ = 0;
    std::vector<Success> successes_;
    std::size_t since_learning_ = 0;
    bool is_filled_ = false;         ///< whether the population ever had its initial size
    std::vector<std::size_t> free_;  ///< genes that have more than one value
    std::size_t size_;               ///< initial number of members, NP of the paper
    UnitGenome centre_;
};

/// The state of the propagator for EvolutionOptions, computed from an island's results one by one.
class EvolutionState {
public:
    explicit EvolutionState(EvolutionPlan plan);

    void take(const Individual& individual, bool born_here);
    [[nodiscard]] Offspring breed(const Stage& stage, RandomStream& random) const;

private:
    struct Start {
        std::int32_t number = 0;
        UnitGenome others;  ///< has the coordinates that CMA-ES does not move
        Id best;            ///< the individual of cma.best_point()
        CmaEs cma;
    };

    [[nodiscard]] Offspring bred(const Stage& stage, RandomStream& random) const;
    [[nodiscard]] Offspring bred_in(std::size_t phase, const Stage& stage, RandomStream& random) const;
    [[nodiscard]] std::size_t phase_of(const Breeding& breeding) const;
    void add_phase(double evaluations, UnitGenome centre);
    void take_from_cma(const Individual& individual, const UnitGenome& point, double loss);
    void take_over(DifferentialEvolution::Member member);
    void begin_phases(Id cause);
    void begin_starts(Id cause);
    [[nodiscard]] UnitGenome far_point(RandomStream& random) const;
    [[nodiscard]] UnitGenome moved_part(const UnitGenome& point) const;
    [[nodiscard]] UnitGenome with_moved_part(UnitGenome point, const UnitGenome& moved) const;

    EvolutionPlan plan_;
    double cma_share_;                ///< 0 if there are no genes that CMA-ES could move
    std::vector<std::size_t> free_;   ///< genes that have more than one value
    double evaluations_;              ///< expected number on the island, or a default
    double additive_share_;           ///< fraction of the births by the additive model, among those without CMA-ES
    std::vector<double> phase_ends_;  ///< fractions of the budget
    std::vector<std::size_t> moved_;  ///< the genes that CMA-ES moves: all except unordered choices
    std::vector<DifferentialEvolution> phases_;
    std::vector<AdditiveModel> additive_;  ///< one per phase, of its results
    Durations durations_;
    std::vector<Start> starts_;
    std::int32_t starts_begun_ = 0;
    std::vector<DifferentialEvolution::Member> of_model_;  ///< the best individuals that a model bred, best first
    std::size_t promoted_ = 0;                             ///< number of of_model_ that became members
    std::int64_t bred_by_model_ = 0;
    std::vector<UnitGenome> known_optima_;
    UnitGenome best_point_;
    double best_loss_;
    double budget_used_ = 0;
    std::int64_t taken_ = 0;
};

}  // namespace finch::search
