#pragma once

#include <Eigen/Dense>

namespace finch::search {

/// Scales of a Gaussian process: the length scales of all rows alike, and variances.
struct GaussianScales {
    double length;
    double signal;
    double linear;     ///< v₁
    double quadratic;  ///< v₂
    double noise;
};

/// The prior of the scales: normal in their logarithms.
struct GaussianPrior {
    GaussianScales median;
    GaussianScales deviation;  ///< of the logarithms
    GaussianScales start;      ///< where a fit begins
    double least_noise;
};

/// A Gaussian process over points, one in each column (Rasmussen and Williams 2006, chapters 2, 4 and 5). Its
/// covariance is 1 (an unknown mean), a Matérn 5/2 kernel that has a length scale for each row, in which two different
/// choices are a distance of 1 apart, and v₁p + v₂p² with the inner product p of the rows that are numbers: the
/// covariance of a quadratic whose coefficients are unknown.
class GaussianProcess {
public:
    /// `is_number`: by row, 1 or 0: a choice.
    GaussianProcess(const Eigen::VectorXd& is_number, const GaussianPrior& prior);

    /// Moves the scales to where the posterior is largest, from the same place each time.
    void fit(const Eigen::MatrixXd& points, const Eigen::VectorXd& values);
    /// Replaces the training data.
    void condition(const Eigen::MatrixXd& points, const Eigen::VectorXd& values);
    /// Adds the points with their predicted means as values.
    void believe(const Eigen::MatrixXd& points);

    struct Prediction {
        Eigen::VectorXd mean;
        Eigen::VectorXd deviation;
    };
    /// For each column of `points`.
    [[nodiscard]] Prediction predict(const Eigen::MatrixXd& points) const;
    /// Mean less `kappa` deviations at a point, and its gradient, which is 0 in choices.
    double lower_bound(const Eigen::VectorXd& point, double kappa, Eigen::VectorXd& gradient) const;

    /// The logarithms of the length scales by row, the signal's variance, v₁, v₂, the noise's variance.
    [[nodiscard]] const Eigen::VectorXd& log_scales() const noexcept { return log_scales_; }
    /// −log p(values, scales) up to a constant, and its gradient by `log_scales`.
    double negative_log_posterior(const Eigen::VectorXd& log_scales, const Eigen::MatrixXd& points,
                                  const Eigen::VectorXd& values, Eigen::VectorXd& gradient) const;

private:
    /// Of all pairs of points.
    struct Kernel {
        Eigen::ArrayXXd matern;  ///< times the signal
        Eigen::ArrayXXd slope;   ///< of it, by −½ of the squared distance
        Eigen::ArrayXXd inner;   ///< products p
        Eigen::ArrayXXd sum;     ///< the covariance
    };
    [[nodiscard]] Kernel kernel(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                const Eigen::VectorXd& log_scales) const;
    /// By row, then the four of GaussianScales that are variances.
    [[nodiscard]] Eigen::VectorXd by_row(const GaussianScales& scales) const;

    Eigen::VectorXd is_number_;
    Eigen::VectorXd prior_;
    Eigen::VectorXd deviation_;
    Eigen::VectorXd start_;
    double least_log_noise_;
    Eigen::VectorXd log_scales_;
    Eigen::MatrixXd points_;
    Eigen::VectorXd values_;
    Eigen::LLT<Eigen::MatrixXd> factor_;  ///< of the covariance of what is known, with noise
    Eigen::VectorXd weights_;             ///< its inverse times the values
};

}  // namespace finch::search
