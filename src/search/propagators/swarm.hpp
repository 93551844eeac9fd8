#pragma once

#include "finch/search/propagator.hpp"

#include "coordinates.hpp"
#include "fold_plan.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace finch::search {

using SwarmPlan = FoldPlan<SwarmOptions>;

/// The state of the propagator for SwarmOptions, computed from an island's results one by one. Each particle has a slot
/// number. The position of a particle is the position of its newest result. The velocity of a particle is the step from
/// its previous result (the first parent of the newest result) to its newest result. If a particle has moved on since a
/// result was bred, this result counts for the best positions, but not for the particle's position.
class SwarmState {
public:
    explicit SwarmState(SwarmPlan plan);

    [[nodiscard]] static std::size_t first_points(const SwarmOptions& options, const Space& /*space*/,
                                                  std::int64_t /*evaluations*/) {
        return size(options, 1);
    }

    void take(const Individual& individual, bool born_here);
    /// Moves a particle with the fewest individuals in training. `in_training`: the individuals in training on the
    /// island.
    [[nodiscard]] Offspring breed(const Stage& stage, const std::vector<const Individual*>& in_training,
                                  RandomStream& random) const;

    struct Particle {
        Id now;  ///< the individual at its position; 0: none yet
        UnitGenome position;
        UnitGenome velocity;
        UnitGenome best;
        double best_loss = std::numeric_limits<double>::infinity();
        std::int64_t results = 0;
    };
    [[nodiscard]] const std::vector<Particle>& particles() const noexcept { return particles_; }
    /// Returns the number of particles of a swarm for this many workers.
    [[nodiscard]] static std::size_t size(const SwarmOptions& options, std::int32_t workers);

private:
    struct Weights {
        double inertia = 0;
        double cognitive = 0;
        double social = 0;
        double fastest = 0;  ///< largest velocity, as a fraction of the range
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
    UnitGenome best_;  ///< the best position of all results
    Id best_id_;
    double best_loss_ = std::numeric_limits<double>::infinity();
};

}  // namespace finch::search
