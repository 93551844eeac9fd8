#pragma once

#include <Eigen/Dense>

namespace finch::search {

/// Scales of a Gaussian process: variances, and one value for the length scales of all rows.
struct GaussianScales {
    double length;
    double signal;
    double linear;     ///< v₁
    double quadratic;  ///< v₂
    double noise;
};

/// The prior of a Gaussian process's scales, a normal distribution of their logarithms.
struct GaussianPrior {
    GaussianScales median;
    GaussianScales deviation;  ///< of the logarithms
    GaussianScales start;      ///< start values of a fit
    double least_noise;
};

/// A Gaussian process over points, one per column (Rasmussen and Williams 2006, chapters 2, 4 and 5). The covariance of
/// two points is the sum of three terms:
/// - 1, for an unknown mean.
/// - a Matérn 5/2 kernel with one length scale per row, in which two different options of a choice have the distance 1.
/// - v₁p + v₂p², for a quadratic with unknown coefficients, with the inner product p of the numeric rows.
class GaussianProcess {
public:
    /// `is_number`: one entry per row of a point, 1 for a number or 0 for a choice.
    GaussianProcess(const Eigen::VectorXd& is_number, const GaussianPrior& prior);

    /// Fits the scales to the data by maximising their posterior, always from the same start values.
    void fit(const Eigen::MatrixXd& points, const Eigen::VectorXd& values);
    /// Replaces the training data.
    void condition(const Eigen::MatrixXd& points, const Eigen::VectorXd& values);
    /// Adds points to the training data, with their predicted means as values.
    void believe(const Eigen::MatrixXd& points);

    struct Prediction {
        Eigen::VectorXd mean;
        Eigen::VectorXd deviation;
    };
    /// Predicts mean and deviation for each column of `points`.
    [[nodiscard]] Prediction predict(const Eigen::MatrixXd& points) const;
    /// Returns the mean minus `kappa` deviations at a point, and its gradient. The gradient is 0 for choices.
    double lower_bound(const Eigen::VectorXd& point, double kappa, Eigen::VectorXd& gradient) const;

    /// Returns the logarithms of the length scales by row, the signal's variance, v₁, v₂ and the noise's variance.
    [[nodiscard]] const Eigen::VectorXd& log_scales() const noexcept { return log_scales_; }
    /// Returns −log p(values, scales) up to a constant, and its gradient with respect to `log_scales`.
    double negative_log_posterior(const Eigen::VectorXd& log_scales, const Eigen::MatrixXd& points,
                                  const Eigen::VectorXd& values, Eigen::VectorXd& gradient) const;

private:
    /// The kernel's values for all pairs of points.
    struct Kernel {
        Eigen::ArrayXXd matern;  ///< the Matérn kernel times the signal's variance
        Eigen::ArrayXXd slope;   ///< derivative of `matern` by −½ of the squared distance / l²
        Eigen::ArrayXXd inner;   ///< inner products p
        Eigen::ArrayXXd sum;     ///< the covariance
    };
    [[nodiscard]] Kernel kernel(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                const Eigen::VectorXd& log_scales) const;
    /// Converts scales to a vector: the length scale of each row, then the four variances of GaussianScales.
    [[nodiscard]] Eigen::VectorXd by_row(const GaussianScales& scales) const;

    Eigen::VectorXd is_number_;
    Eigen::VectorXd prior_;
    Eigen::VectorXd deviation_;
    Eigen::VectorXd start_;
    double least_log_noise_;
    Eigen::VectorXd log_scales_;
    Eigen::MatrixXd points_;
    Eigen::VectorXd values_;
    Eigen::LLT<Eigen::MatrixXd> factor_;  ///< of the covariance of the training data, with noise
    Eigen::VectorXd weights_;             ///< inverse covariance times the values
};

}  // namespace finch::search
