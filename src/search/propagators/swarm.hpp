#pragma once

#include "finch/search/propagator.hpp"

#include "coordinates.hpp"
#include "fold_plan.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace finch::search {

using SwarmPlan = FoldPlan<SwarmOptions>;

/// All that SwarmOptions keeps: a fold over an island's results. A particle is a slot. Its position is its newest
/// result's, its velocity the way from the one before; which that was, the result's first parent says. A result of a
/// particle that has moved on since it was bred counts for the best places alone.
class SwarmState {
public:
    explicit SwarmState(SwarmPlan plan);

    [[nodiscard]] static std::size_t first_points(const SwarmOptions& options, const Space& /*space*/,
                                                  std::int64_t /*evaluations*/) {
        return size(options, 1);
    }

    void take(const Individual& individual, bool born_here);
    /// `in_training`: on the island. Moves one of the particles of which the fewest are in training.
    [[nodiscard]] Offspring breed(const Stage& stage, const std::vector<const Individual*>& in_training,
                                  RandomStream& random) const;

    struct Particle {
        Id now;  ///< the individual that it is at; 0: there is none yet
        UnitGenome position;
        UnitGenome velocity;
        UnitGenome best;
        double best_loss = std::numeric_limits<double>::infinity();
        std::int64_t results = 0;
    };
    [[nodiscard]] const std::vector<Particle>& particles() const noexcept { return particles_; }
    /// How many particles a swarm of so many workers has.
    [[nodiscard]] static std::size_t size(const SwarmOptions& options, std::int32_t workers);

private:
    struct Weights {
        double inertia = 0;
        double cognitive = 0;
        double social = 0;
        double fastest = std::numeric_limits<double>::infinity();  ///< in ranges
    };

    [[nodiscard]] static Weights weights_of(const SwarmOptions& options);
    [[nodiscard]] UnitGenome point_of(const Individual& individual, const UnitGenome& before) const;
    [[nodiscard]] UnitGenome moved(const Particle& particle, RandomStream& random) const;
    [[nodiscard]] std::size_t choose(const std::vector<const Individual*>& in_training, RandomStream& random) const;

    SwarmPlan plan_;
    Weights weights_;
    std::vector<std::size_t> free_;
    Thresholds thresholds_;  ///< of all genes
    std::vector<Particle> particles_;
    UnitGenome best_;  ///< of all
    Id best_id_;
    double best_loss_ = std::numeric_limits<double>::infinity();
};

}  // namespace finch::search
