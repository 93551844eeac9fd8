#pragma once

#include "finch/search/propagator.hpp"

#include "cma_es.hpp"
#include "fold_plan.hpp"
#include "unit_genome.hpp"

#include <cstdint>
#include <vector>

namespace finch::search {

/// What a run of EvolutionOptions looks like, known at its start.
using EvolutionPlan = FoldPlan<EvolutionOptions>;

/// One population of differential evolution, of one phase.
class DifferentialEvolution {
public:
    /// Of about `evaluations`. Starts over the whole cube, or, with a `centre`, around it.
    DifferentialEvolution(const Space& space, double evaluations, UnitGenome centre);

    struct Member {
        UnitGenome point;
        double loss = 0;
        Id id;                  ///< whose genes these are
        std::int32_t slot = 0;  ///< of the individual that founded it
    };

    [[nodiscard]] bool is_filled() const noexcept { return is_filled_; }
    [[nodiscard]] std::size_t first_size() const noexcept { return size_; }
    [[nodiscard]] UnitGenome first_point(const Space& space, RandomStream& random) const;
    /// A trial for a slot: current-to-pbest/1/bin.
    [[nodiscard]] Offspring trial(const Space& space, RandomStream& random) const;
    /// One member, or a uniform cross of two, with about one gene changed: for a slot, too.
    [[nodiscard]] Offspring mutant(const Space& space, RandomStream& random) const;
    /// `done`: the share of the phase's budget that is used. `random` decides what leaves the archive.
    void take(Member member, const Breeding& breeding, double done, RandomStream& random);
    /// A member from elsewhere: takes the place of the member `instead`, else the worst one's, unless it is there
    /// already or no better.
    void inject(Member member, Id instead = {});
    [[nodiscard]] const std::vector<Member>& members() const noexcept { return members_; }

private:
    struct Success {
        double scale_factor = 0;
        double crossover_rate = 0;
        double gain = 0;
    };

    void insert(Member member);
    void learn();
    void shrink(double done);

    std::vector<Member> members_;  ///< best first
    std::vector<UnitGenome> archive_;
    std::vector<double> scale_factors_;    ///< M_F
    std::vector<double> crossover_rates_;  ///< M_CR
    std::size_t memory_at_ = 0;
    std::vector<Success> successes_;
    std::size_t since_learning_ = 0;
    bool is_filled_ = false;         ///< whether there were ever as many members as at the beginning
    std::vector<std::size_t> free_;  ///< genes that have more than one value
    std::size_t size_;               ///< NP at the beginning
    UnitGenome centre_;
};

/// All that EvolutionOptions keeps: a fold over an island's results.
class EvolutionState {
public:
    explicit EvolutionState(EvolutionPlan plan);

    void take(const Individual& individual, bool born_here);
    [[nodiscard]] Offspring breed(const Stage& stage, RandomStream& random) const;

private:
    struct Start {
        std::int32_t number = 0;
        UnitGenome others;  ///< gives the coordinates that CMA-ES does not move
        Id best;            ///< who has cma.best_point()
        CmaEs cma;
    };

    [[nodiscard]] Offspring bred(const Stage& stage, RandomStream& random) const;
    void take_from_cma(const Individual& individual, const UnitGenome& point, double loss);
    void take_over(DifferentialEvolution::Member member);
    void begin_phases(Id cause);
    void begin_starts(Id cause);
    [[nodiscard]] UnitGenome far_point(RandomStream& random) const;
    [[nodiscard]] UnitGenome moved_part(const UnitGenome& point) const;
    [[nodiscard]] UnitGenome with_moved_part(UnitGenome point, const UnitGenome& moved) const;

    EvolutionPlan plan_;
    double cma_share_;                ///< 0 if there is nothing that CMA-ES could move
    std::vector<std::size_t> free_;   ///< genes that have more than one value
    double evaluations_;              ///< of the island, as far as it is known
    std::vector<double> phase_ends_;  ///< shares of the budget
    std::vector<std::size_t> moved_;  ///< the genes that CMA-ES moves: all but choices
    std::vector<DifferentialEvolution> phases_;
    std::vector<Start> starts_;
    std::int32_t starts_begun_ = 0;
    std::vector<DifferentialEvolution::Member> of_model_;  ///< the best that a model bred, best first
    std::size_t promoted_ = 0;                             ///< of them, that became members
    std::int64_t bred_by_model_ = 0;
    std::vector<UnitGenome> known_optima_;
    UnitGenome best_point_;
    double best_loss_;
    double budget_used_ = 0;
    std::int64_t taken_ = 0;
};

}  // namespace finch::search
