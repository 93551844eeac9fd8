#include "gaussian_process.hpp"

#include "lbfgs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace finch::search {
namespace {

using Eigen::ArrayXXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double constant = 1;             ///< variance of the unknown mean
constexpr double jitter = 1e-8;            ///< of 1 and the signal
constexpr double usual_linear = 0.3;       ///< v₁
constexpr double usual_quadratic = 0.1;    ///< v₂
constexpr double quadratic_deviation = 2;  ///< of both
/// From where a quadratic explains all that is seen, the fit finds one if there is one; from the priors' medians, often
/// not. Signal, v₁, v₂, noise.
const Eigen::Vector4d first_scales{0.05, 1, 1, 1e-5};
constexpr double box_deviations = 4;  ///< of the priors, that the scales are fitted in
constexpr double most_noise = 2;
constexpr int most_iterations = 40;
constexpr double least_variance = 1e-12;

/// The Matérn 5/2 kernel of a distance times √5, and its derivative by −½ of the squared distance.
ArrayXXd matern(const ArrayXXd& distances) {
    return (1 + distances + distances.square() / 3) * (-distances).exp();
}
ArrayXXd matern_slope(const ArrayXXd& distances) {
    return 5.0 / 3 * (1 + distances) * (-distances).exp();
}

}  // namespace

GaussianProcess::GaussianProcess(std::vector<char> is_choice, const GaussianPriors& priors, bool has_quadratic)
    : is_choice_(std::move(is_choice)), has_quadratic_(has_quadratic), least_log_noise_(std::log(priors.least_noise)) {
    const Index rows = std::ssize(is_choice_);
    is_number_.resize(rows);
    for (Index row = 0; row < rows; ++row) {
        is_number_[row] = is_choice_[static_cast<std::size_t>(row)] != 0 ? 0 : 1;
    }
    const Index count = rows + (has_quadratic ? 4 : 2);
    prior_ = VectorXd::Zero(count);
    deviation_ = VectorXd::Ones(count);
    prior_.head(rows).setConstant(std::log(priors.length));
    if (has_quadratic) {
        prior_.segment(rows + 1, 2) << std::log(usual_linear), std::log(usual_quadratic);
        deviation_.segment(rows + 1, 2).setConstant(quadratic_deviation);
    }
    prior_[count - 1] = std::log(priors.noise);
    deviation_[count - 1] = priors.noise_deviation;
    start_ = prior_;
    if (has_quadratic) {
        start_.tail(4) = first_scales.array().log();
    }
    log_scales_ = prior_;
    scales_ = scales_of(log_scales_);
}

GaussianProcess::Scales GaussianProcess::scales_of(const VectorXd& log_scales) const {
    const Index rows = is_number_.size();
    return {.lengths = log_scales.head(rows).array().exp(),
            .signal = std::exp(log_scales[rows]),
            .linear = has_quadratic_ ? std::exp(log_scales[rows + 1]) : 0,
            .quadratic = has_quadratic_ ? std::exp(log_scales[rows + 2]) : 0,
            .noise = std::exp(log_scales[log_scales.size() - 1])};
}

ArrayXXd GaussianProcess::distances(const MatrixXd& a, const MatrixXd& b, const Scales& scales) const {
    ArrayXXd squares = ArrayXXd::Zero(a.cols(), b.cols());
    for (Index row = 0; row < a.rows(); ++row) {
        const double scale = 5 / (scales.lengths[row] * scales.lengths[row]);
        const Eigen::ArrayXd of_a = a.row(row).transpose();
        for (Index j = 0; j < b.cols(); ++j) {
            if (is_choice_[static_cast<std::size_t>(row)] != 0) {
                squares.col(j) += scale * (of_a != b(row, j)).cast<double>();
            } else {
                squares.col(j) += scale * (of_a - b(row, j)).square();
            }
        }
    }
    return squares.sqrt();
}

ArrayXXd GaussianProcess::products(const MatrixXd& a, const MatrixXd& b) const {
    return (a.transpose() * is_number_.asDiagonal() * b).array();
}

MatrixXd GaussianProcess::covariance(const MatrixXd& a, const MatrixXd& b, const Scales& scales) const {
    ArrayXXd sum = constant + scales.signal * matern(distances(a, b, scales));
    if (has_quadratic_) {
        const ArrayXXd inner = products(a, b);
        sum += scales.linear * inner + scales.quadratic * inner.square();
    }
    return sum.matrix();
}

double GaussianProcess::variance(const VectorXd& point, const Scales& scales) const {
    const double inner = has_quadratic_ ? point.cwiseProduct(is_number_).squaredNorm() : 0;
    return constant + scales.signal + scales.linear * inner + scales.quadratic * inner * inner;
}

/// With the covariance K, its inverse times the values α and W = K⁻¹ − αα^T, the derivative by a scale θ is
/// ½ tr(W dK/dθ).
double GaussianProcess::negative_log_posterior(const VectorXd& log_scales, const MatrixXd& points,
                                               const VectorXd& values, VectorXd& gradient) const {
    const Scales scales = scales_of(log_scales);
    const Index rows = points.rows();
    const ArrayXXd apart = distances(points, points, scales);
    const ArrayXXd signal = scales.signal * matern(apart);
    const ArrayXXd inner = has_quadratic_ ? products(points, points) : ArrayXXd();
    MatrixXd all = (constant + signal).matrix();
    if (has_quadratic_) {
        all.array() += scales.linear * inner + scales.quadratic * inner.square();
    }
    all.diagonal().array() += scales.noise + jitter * (1 + scales.signal);
    const Eigen::LLT<MatrixXd> factor(all);
    gradient = VectorXd::Zero(log_scales.size());
    if (factor.info() != Eigen::Success) {
        return std::numeric_limits<double>::infinity();
    }
    const VectorXd weights = factor.solve(values);
    const VectorXd from_prior = (log_scales - prior_).cwiseQuotient(deviation_);
    MatrixXd outer = factor.solve(MatrixXd::Identity(all.rows(), all.cols()));
    outer.noalias() -= weights * weights.transpose();

    // Of a row's length l the derivative of K is the slope times Δ²/l²; the sum over all pairs needs no matrix of Δ².
    const MatrixXd slope = (outer.array() * scales.signal * matern_slope(apart)).matrix();
    const VectorXd sums = slope.colwise().sum();
    for (Index row = 0; row < rows; ++row) {
        const double scale = 1 / (scales.lengths[row] * scales.lengths[row]);
        const VectorXd x = points.row(row).transpose();
        double sum = 0;
        if (is_choice_[static_cast<std::size_t>(row)] != 0) {
            for (Index j = 0; j < x.size(); ++j) {
                sum += ((x.array() != x[j]).cast<double>() * slope.col(j).array()).sum();
            }
        } else {
            sum = 2 * (sums.dot(x.cwiseAbs2()) - x.dot(slope * x));
        }
        gradient[row] = 0.5 * scale * sum;
    }
    gradient[rows] = 0.5 * (outer.array() * signal).sum() + 0.5 * jitter * scales.signal * outer.trace();
    if (has_quadratic_) {
        gradient[rows + 1] = 0.5 * scales.linear * (outer.array() * inner).sum();
        gradient[rows + 2] = 0.5 * scales.quadratic * (outer.array() * inner.square()).sum();
    }
    gradient[gradient.size() - 1] = 0.5 * scales.noise * outer.trace();
    gradient += from_prior.cwiseQuotient(deviation_);
    return 0.5 * values.dot(weights) + factor.matrixLLT().diagonal().array().log().sum() +
           0.5 * from_prior.squaredNorm();
}

void GaussianProcess::fit(const MatrixXd& points, const VectorXd& values) {
    log_scales_ = start_;
    Box box{prior_ - box_deviations * deviation_, prior_ + box_deviations * deviation_};
    const Index noise = prior_.size() - 1;
    box.low[noise] = least_log_noise_;
    box.high[noise] = std::log(most_noise);
    const Objective objective = [&](const VectorXd& scales, VectorXd& gradient) {
        return negative_log_posterior(scales, points, values, gradient);
    };
    minimize(objective, box, most_iterations, 1, log_scales_);
    scales_ = scales_of(log_scales_);
}

void GaussianProcess::condition(const MatrixXd& points, const VectorXd& values) {
    points_ = points;
    const MatrixXd known = covariance(points, points, scales_);
    for (double extra = 0; extra < 1; extra = std::max(10 * extra, 1e-6)) {
        MatrixXd noisy = known;
        noisy.diagonal().array() += scales_.noise + (jitter + extra) * (1 + scales_.signal);
        factor_.compute(noisy);
        if (factor_.info() == Eigen::Success) {
            break;
        }
    }
    weights_ = factor_.solve(values);
}

GaussianProcess::Prediction GaussianProcess::predict(const MatrixXd& points) const {
    MatrixXd cross = covariance(points_, points, scales_);
    Prediction prediction;
    prediction.mean = cross.transpose() * weights_;
    factor_.matrixL().solveInPlace(cross);
    prediction.deviation.resize(points.cols());
    for (Index i = 0; i < points.cols(); ++i) {
        const double left = variance(points.col(i), scales_) - cross.col(i).squaredNorm();
        prediction.deviation[i] = std::sqrt(std::max(least_variance, left));
    }
    return prediction;
}

double GaussianProcess::lower_bound(const VectorXd& point, double kappa, VectorXd& gradient) const {
    const ArrayXXd apart = distances(points_, point, scales_);
    const VectorXd inner = has_quadratic_ ? VectorXd(products(points_, point).matrix()) : VectorXd();
    VectorXd cross = (constant + scales_.signal * matern(apart)).matrix();
    // dk/dx is the sum of these times (known point − x)/l², and of the known points times of_inner.
    const VectorXd of_apart = (scales_.signal * matern_slope(apart)).matrix();
    VectorXd of_inner;
    if (has_quadratic_) {
        cross += scales_.linear * inner + scales_.quadratic * inner.cwiseAbs2();
        of_inner = (scales_.linear + 2 * scales_.quadratic * inner.array()).matrix();
    }
    const double mean = cross.dot(weights_);
    VectorXd solved = factor_.matrixL().solve(cross);
    const double deviation = std::sqrt(std::max(least_variance, variance(point, scales_) - solved.squaredNorm()));
    factor_.matrixU().solveInPlace(solved);
    // μ − κσ changes with k by α + κ/σ K⁻¹k, and with k(x, x) by −κ/2σ.
    const VectorXd by_cross = weights_ + kappa / deviation * solved;
    const VectorXd share = of_apart.cwiseProduct(by_cross);
    gradient = (points_ * share - share.sum() * point).cwiseQuotient(scales_.lengths.cwiseAbs2());
    if (has_quadratic_) {
        const double own = point.cwiseProduct(is_number_).squaredNorm();
        gradient += points_ * of_inner.cwiseProduct(by_cross);
        gradient -= kappa / deviation * (scales_.linear + 2 * scales_.quadratic * own) * point;
    }
    gradient = gradient.cwiseProduct(is_number_);
    return mean - kappa * deviation;
}

}  // namespace finch::search
