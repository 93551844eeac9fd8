#pragma once

#include "finch/search/gene.hpp"

#include <Eigen/Dense>
#include <optional>
#include <vector>

namespace finch::search {

/// A Gaussian process with a Matérn 5/2 kernel over points of the unit cube, with a length scale for each gene; two
/// different choices are a distance of 1 apart (Rasmussen and Williams 2006, chapters 2, 4 and 5). Its prior has mean 0
/// and deviation 1.
class GaussianProcess {
public:
    explicit GaussianProcess(const Space& space);

    /// Moves the length scales and the noise to where the posterior is larger, from where they are, by `tries` random
    /// steps. Columns of `points` are points, `values` what was seen there.
    void fit(const Eigen::MatrixXd& points, const Eigen::VectorXd& values, int tries, RandomStream& random);
    /// Takes these to be all that is known.
    void condition(const Eigen::MatrixXd& points, const Eigen::VectorXd& values);

    struct Prediction {
        Eigen::VectorXd mean;
        Eigen::VectorXd deviation;
    };
    /// For each column of `points`.
    [[nodiscard]] Prediction predict(const Eigen::MatrixXd& points) const;

    [[nodiscard]] double noise() const noexcept;  ///< variance
    [[nodiscard]] Eigen::VectorXd length_scales() const { return log_lengths_.array().exp(); }

private:
    using Factor = Eigen::LLT<Eigen::MatrixXd>;

    [[nodiscard]] Eigen::MatrixXd kernel(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                         const Eigen::VectorXd& log_lengths) const;
    /// Of the values and the priors of the scales, negated.
    [[nodiscard]] double log_posterior(const Eigen::MatrixXd& points, const Eigen::VectorXd& values,
                                       const Eigen::VectorXd& log_lengths, double log_noise) const;

    std::vector<char> is_choice_;
    Eigen::VectorXd log_lengths_;
    double log_noise_;
    Eigen::MatrixXd points_;
    std::optional<Factor> factor_;  ///< of what is known
    Eigen::VectorXd weights_;       ///< (K + noise)^(−1)·values
};

}  // namespace finch::search
