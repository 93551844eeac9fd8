#pragma once

#include <Eigen/Dense>
#include <vector>

namespace finch::search {

/// What scales a Gaussian process expects before it has seen anything: normal in their logarithms, with these medians
/// and deviations.
struct GaussianPriors {
    double length = 0.7;  ///< deviation 1, as that of the signal, whose variance has the median 1
    double noise = 0.01;  ///< variance
    double noise_deviation = 2;
    double least_noise = 1e-6;
};

/// A Gaussian process over points, one in each column (Rasmussen and Williams 2006, chapters 2, 4 and 5). Its
/// covariance is 1 (an unknown mean), a signal with a Matérn 5/2 kernel that has a length scale for each row, in which
/// two different choices are a distance of 1 apart, and, if asked for, v₁p + v₂p² with the inner product p of the rows
/// that are no choices: the covariance of a quadratic whose coefficients are unknown.
class GaussianProcess {
public:
    /// `is_choice`: by row.
    GaussianProcess(std::vector<char> is_choice, const GaussianPriors& priors, bool has_quadratic);

    /// Moves the scales to where the posterior is larger, by L-BFGS, from the same place each time.
    void fit(const Eigen::MatrixXd& points, const Eigen::VectorXd& values);
    /// Takes these to be all that is known.
    void condition(const Eigen::MatrixXd& points, const Eigen::VectorXd& values);

    struct Prediction {
        Eigen::VectorXd mean;
        Eigen::VectorXd deviation;
    };
    /// For each column of `points`.
    [[nodiscard]] Prediction predict(const Eigen::MatrixXd& points) const;
    /// Mean less `kappa` deviations at a point, and its gradient, which is 0 in choices.
    double lower_bound(const Eigen::VectorXd& point, double kappa, Eigen::VectorXd& gradient) const;

    /// The logarithms of the length scales, of the signal's variance, of v₁ and v₂ if it has them, of the noise's
    /// variance.
    [[nodiscard]] const Eigen::VectorXd& log_scales() const noexcept { return log_scales_; }
    /// Of the values and the priors at these scales, negated and but for a constant, with its gradient.
    double negative_log_posterior(const Eigen::VectorXd& log_scales, const Eigen::MatrixXd& points,
                                  const Eigen::VectorXd& values, Eigen::VectorXd& gradient) const;

private:
    /// exp() of log_scales, by what they are.
    struct Scales {
        Eigen::VectorXd lengths;
        double signal = 1;
        double linear = 0;
        double quadratic = 0;
        double noise = 0;
    };
    [[nodiscard]] Scales scales_of(const Eigen::VectorXd& log_scales) const;
    /// Between the columns of `a` and of `b`: the scaled distance times √5, and the inner product.
    [[nodiscard]] Eigen::ArrayXXd distances(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                            const Scales& scales) const;
    [[nodiscard]] Eigen::ArrayXXd products(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) const;
    [[nodiscard]] Eigen::MatrixXd covariance(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                             const Scales& scales) const;
    [[nodiscard]] double variance(const Eigen::VectorXd& point, const Scales& scales) const;

    std::vector<char> is_choice_;
    Eigen::VectorXd is_number_;  ///< 1 or 0, by row
    bool has_quadratic_;
    Eigen::VectorXd prior_;
    Eigen::VectorXd deviation_;
    Eigen::VectorXd start_;  ///< of a fit
    double least_log_noise_;
    Eigen::VectorXd log_scales_;
    Scales scales_;
    Eigen::MatrixXd points_;
    Eigen::LLT<Eigen::MatrixXd> factor_;  ///< of the covariance of what is known, with noise
    Eigen::VectorXd weights_;             ///< its inverse times the values
};

}  // namespace finch::search
