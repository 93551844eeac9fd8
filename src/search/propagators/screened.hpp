#pragma once

#include "finch/search/propagator.hpp"

#include "fold_plan.hpp"
#include "global_model.hpp"
#include "local_model.hpp"
#include "unit_genome.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <vector>

namespace finch::search {

using ScreenedPlan = FoldPlan<ScreenedOptions>;

/// The state of the propagator for ScreenedOptions, computed from an island's results one by one.
class ScreenedState {
public:
    explicit ScreenedState(ScreenedPlan plan);

    void take(const Individual& individual, bool born_here);
    /// Breeds an individual that is not similar to those in training. `in_training`: the individuals in training on the
    /// island.
    [[nodiscard]] Offspring breed(const Stage& stage, const std::vector<const Individual*>& in_training,
                                  RandomStream& random) const;
    /// Returns point `number` of a Latin hypercube.
    [[nodiscard]] UnitGenome first_point(std::uint64_t number) const;
    /// Returns the number of points of the Latin hypercube: two per gene, but at most a quarter of `evaluations` (0:
    /// not known), and at least 6.
    [[nodiscard]] static std::size_t first_points(const ScreenedOptions& options, const Space& space,
                                                  std::int64_t evaluations);

    /// Returns the training data of the global model.
    [[nodiscard]] GlobalModel::Data data() const {
        return global_.data(best_first(seen_.size(), scalarisation(seen_.size(), middle())));
    }

private:
    /// Returns a random stream of the island for the draw number `which`, which must be below 2³².
    [[nodiscard]] RandomStream stream(std::uint64_t which, std::uint32_t purpose) const;
    /// Returns the first `count` results of the island, sorted by loss or, with several objectives, by their
    /// scalarisation. Results without a loss come last. Leaves out results of lower rungs if ten results are on higher
    /// rungs.
    [[nodiscard]] std::vector<const Seen*> best_first(std::size_t count, const Scalarisation& scalarisation) const;
    /// Returns the scalarisation of the first `count` results along `direction`.
    [[nodiscard]] Scalarisation scalarisation(std::size_t count, const Eigen::VectorXd& direction) const;
    /// Returns the direction in which all objectives count the same.
    [[nodiscard]] Eigen::VectorXd middle() const;
    void fit_global() const;
    void fit_local(const std::vector<const Seen*>& results, const Scalarisation& scalarisation) const;

    ScreenedPlan plan_;
    std::vector<std::size_t> free_;  ///< genes that have more than one value
    std::size_t first_points_;
    std::vector<std::vector<std::uint32_t>> strata_;  ///< by gene: strata of the Latin hypercube
    std::vector<Seen> seen_;
    std::set<Genome> known_;
    double failures_ = 0;
    // The two models, with the scales of their last fit. The scales depend only on the results. A model is fitted when
    // it is first used.
    mutable GlobalModel global_;
    mutable LocalModel local_;
    mutable std::uint64_t global_history_ = 0;  ///< of the results to which the model is fitted
    mutable std::uint64_t local_history_ = 0;
};

}  // namespace finch::search
