#pragma once

#include "model_results.hpp"
#include "objective_models.hpp"

#include <optional>
#include <vector>

namespace finch::search {

/// A Gaussian process of the ranks of all results, for each objective.
class GlobalModel {
public:
    /// `most_points`: maximum number of results that the model uses.
    GlobalModel(const Space& space, std::size_t most_points, std::size_t objectives);

    /// The training data of the model: points in columns, and the ranks of their values as quantiles of a normal
    /// distribution, one row per objective. If there are more than `most_points` results, the data are the best
    /// `most_points` / 2 results and the newest of the others. All failures share one rank.
    struct Data {
        Eigen::MatrixXd points;
        Eigen::MatrixXd values;
    };
    /// Returns the training data for `results`, which must be sorted: best first, results without a loss last.
    [[nodiscard]] Data data(const std::vector<const Seen*>& results) const { return data(results, most_points_); }

    /// Fits the model's scales to `results`.
    void fit(const std::vector<const Seen*>& results);
    /// Predicts the value of each of `points`, which are columns, from `results`. A small value is a small loss. Only
    /// for one objective.
    [[nodiscard]] Eigen::VectorXd predict(const std::vector<const Seen*>& results, const Eigen::MatrixXd& points) const;
    /// Returns a proposed genome, or nothing if every candidate is known or infeasible. If `looks`, the model chooses
    /// the genome; otherwise it is chosen at random. `direction`: of the Scalarisation of the objectives.
    [[nodiscard]] std::optional<Proposal> propose(const std::vector<const Seen*>& results,
                                                  const Eigen::VectorXd& direction,
                                                  const std::vector<UnitGenome>& in_training, const Allowed& allowed,
                                                  bool looks, RandomStream& random) const;

private:
    [[nodiscard]] Data data(const std::vector<const Seen*>& results, std::size_t most_points) const;
    [[nodiscard]] std::vector<Proposal> candidates(const std::vector<const Seen*>& results, RandomStream& random) const;

    Space space_;
    std::vector<std::size_t> free_;  ///< genes that have more than one value
    std::size_t most_points_;
    ObjectiveModels models_;
};

}  // namespace finch::search
