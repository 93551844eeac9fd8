#pragma once

#include "gaussian_process.hpp"
#include "model_results.hpp"

#include <optional>
#include <vector>

namespace finch::search {

/// A Gaussian process of all results' ranks.
class GlobalModel {
public:
    /// It knows at most `most_points` results.
    GlobalModel(const Space& space, std::size_t most_points);

    /// Its training data: points in columns, and their losses' ranks as quantiles of a normal distribution. Of more
    /// than `most_points` results the best half and the newest. Failures share one rank.
    struct Data {
        Eigen::MatrixXd points;
        Eigen::VectorXd values;
    };
    /// `results`: the best first, those without a loss last.
    [[nodiscard]] Data data(const std::vector<const Seen*>& results) const { return data(results, most_points_); }

    /// Fits its scales to `results`.
    void fit(const std::vector<const Seen*>& results);
    /// Nothing if every candidate is known or infeasible. `looks`: chooses by the model, else at random.
    [[nodiscard]] std::optional<Proposal> propose(const std::vector<const Seen*>& results,
                                                  const std::vector<UnitGenome>& in_training, const Allowed& allowed,
                                                  bool looks, RandomStream& random) const;

private:
    [[nodiscard]] Data data(const std::vector<const Seen*>& results, std::size_t most_points) const;
    [[nodiscard]] std::vector<Proposal> candidates(const std::vector<const Seen*>& results, RandomStream& random) const;

    Space space_;
    std::vector<std::size_t> free_;  ///< genes that have more than one value
    std::size_t most_points_;
    GaussianProcess process_;
};

}  // namespace finch::search
