#pragma once

#include "gaussian_process.hpp"
#include "model_results.hpp"

#include <optional>
#include <vector>

namespace finch::search {

/// All results by their ranks: where in the space good ones are to be expected.
class GlobalModel {
public:
    /// `most_points`: results that it is fitted to.
    GlobalModel(const Space& space, std::size_t most_points);

    /// What it is shown: points in columns and their losses' places as quantiles of a normal distribution. All results,
    /// or where that is too much the best half and the newest; without a loss all are equally bad.
    struct Data {
        Eigen::MatrixXd points;
        Eigen::VectorXd values;
    };
    /// `results`: the best first, those without a loss last.
    [[nodiscard]] Data data(const std::vector<const Seen*>& results) const { return data(results, most_points_); }

    /// Fits its scales to `results`.
    void fit(const std::vector<const Seen*>& results);
    /// Nothing where all that it tries is known or ruled out. `looks`: whether it predicts, or draws of what it tries.
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
