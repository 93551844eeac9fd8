#include "gaussian_process.hpp"

#include "minimize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace finch::search {
namespace {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double jitter = 1e-8;       ///< times 1 + the signal's variance
constexpr double box_deviations = 4;  ///< deviations of the prior up to which scales are fitted
constexpr double most_noise = 2;
constexpr int most_evaluations = 50;  ///< evaluations of the posterior per fit
constexpr double least_variance = 1e-12;

/// Positions of the variances in the vector of scales, counted from the end of the length scales.
enum Place : Index { signal, linear, quadratic, noise, variances };

}  // namespace

GaussianProcess::GaussianProcess(const VectorXd& is_number, const GaussianPrior& prior)
    : is_number_(is_number),
      prior_(by_row(prior.median).array().log()),
      deviation_(by_row(prior.deviation)),
      start_(by_row(prior.start).array().log()),
      least_log_noise_(std::log(prior.least_noise)),
      log_scales_(prior_) {}

VectorXd GaussianProcess::by_row(const GaussianScales& scales) const {
    VectorXd all = VectorXd::Constant(is_number_.size() + variances, scales.length);
    all.tail(variances) << scales.signal, scales.linear, scales.quadratic, scales.noise;
    return all;
}

GaussianProcess::Kernel GaussianProcess::kernel(const MatrixXd& a, const MatrixXd& b,
                                                const VectorXd& log_scales) const {
    const ArrayXd of = log_scales.tail(variances).array().exp();
    ArrayXXd squares = ArrayXXd::Zero(a.cols(), b.cols());
    for (Index row = 0; row < a.rows(); ++row) {
        const double scale = 5 * std::exp(-2 * log_scales[row]);
        const ArrayXd of_a = a.row(row).transpose();
        for (Index j = 0; j < b.cols(); ++j) {
            if (is_number_[row] == 0) {
                squares.col(j) += scale * (of_a != b(row, j)).cast<double>();
            } else {
                squares.col(j) += scale * (of_a - b(row, j)).square();
            }
        }
    }
    const ArrayXXd distance = squares.sqrt();
    const ArrayXXd decay = of[signal] * (-distance).exp();
    Kernel found{.matern = (1 + distance + squares / 3) * decay,
                 .slope = 5.0 / 3 * (1 + distance) * decay,
                 .inner = (a.transpose() * is_number_.asDiagonal() * b).array(),
                 .sum = {}};
    found.sum = 1 + found.matern + (of[linear] + of[quadratic] * found.inner) * found.inner;
    return found;
}

/// Let K be the covariance matrix, α = K⁻¹ times the values, and W = K⁻¹ − αα^T. Without the prior, the derivative with
/// respect to a scale θ is ½ tr(W dK/dθ).
double GaussianProcess::negative_log_posterior(const VectorXd& log_scales, const MatrixXd& points,
                                               const VectorXd& values, VectorXd& gradient) const {
    const Index rows = points.rows();
    const ArrayXd of = log_scales.tail(variances).array().exp();
    const Kernel pairs = kernel(points, points, log_scales);
    MatrixXd covariance = pairs.sum.matrix();
    covariance.diagonal().array() += of[noise] + jitter * (1 + of[signal]);
    const Eigen::LLT<MatrixXd> factor(covariance);
    gradient = VectorXd::Zero(log_scales.size());
    if (factor.info() != Eigen::Success) {
        return std::numeric_limits<double>::infinity();
    }
    const VectorXd weights = factor.solve(values);
    MatrixXd outer = factor.solve(MatrixXd::Identity(covariance.rows(), covariance.cols()));
    outer.noalias() -= weights * weights.transpose();

    // For the length scale l of a row, the derivative of K with respect to log l is the slope times Δ²/l². For a
    // numeric row, the sum over all pairs is computed without a matrix of the squared distances Δ².
    const MatrixXd slope = (outer.array() * pairs.slope).matrix();
    const VectorXd sums = slope.colwise().sum();
    for (Index row = 0; row < rows; ++row) {
        const VectorXd x = points.row(row).transpose();
        double sum = 0;
        for (Index j = 0; is_number_[row] == 0 && j < x.size(); ++j) {
            sum += ((x.array() != x[j]).cast<double>() * slope.col(j).array()).sum();
        }
        if (is_number_[row] != 0) {
            sum = 2 * (sums.dot(x.cwiseAbs2()) - x.dot(slope * x));
        }
        gradient[row] = std::exp(-2 * log_scales[row]) * sum;
    }
    gradient.tail(variances) << (outer.array() * pairs.matern).sum() + jitter * of[signal] * outer.trace(),
        of[linear] * (outer.array() * pairs.inner).sum(), of[quadratic] * (outer.array() * pairs.inner.square()).sum(),
        of[noise] * outer.trace();
    const VectorXd from_prior = (log_scales - prior_).cwiseQuotient(deviation_);
    gradient = 0.5 * gradient + from_prior.cwiseQuotient(deviation_);
    return 0.5 * values.dot(weights) + factor.matrixLLT().diagonal().array().log().sum() +
           0.5 * from_prior.squaredNorm();
}

void GaussianProcess::fit(const MatrixXd& points, const VectorXd& values) {
    Box box{prior_ - box_deviations * deviation_, prior_ + box_deviations * deviation_};
    box.low.tail(1)[0] = least_log_noise_;
    box.high.tail(1)[0] = std::log(most_noise);
    const Objective objective = [&](const VectorXd& scales, VectorXd& gradient) {
        return negative_log_posterior(scales, points, values, gradient);
    };
    log_scales_ = start_;
    minimize(objective, box, most_evaluations, log_scales_);
}

void GaussianProcess::condition(const MatrixXd& points, const VectorXd& values) {
    points_ = points;
    values_ = values;
    const ArrayXd of = log_scales_.tail(variances).array().exp();
    const MatrixXd exact = kernel(points, points, log_scales_).sum.matrix();
    for (double extra = 0; extra < 1; extra = std::max(10 * extra, 1e-6)) {
        MatrixXd covariance = exact;
        covariance.diagonal().array() += of[noise] + jitter * (1 + of[signal]) + extra * exact.diagonal().array();
        factor_.compute(covariance);
        if (factor_.info() == Eigen::Success) {
            break;
        }
    }
    weights_ = factor_.solve(values);
}

void GaussianProcess::believe(const MatrixXd& points) {
    if (points.cols() > 0) {
        MatrixXd all(points.rows(), points_.cols() + points.cols());
        all << points_, points;
        VectorXd values(all.cols());
        values << values_, predict(points).mean;
        condition(all, values);
    }
}

GaussianProcess::Prediction GaussianProcess::predict(const MatrixXd& points) const {
    MatrixXd cross = kernel(points_, points, log_scales_).sum.matrix();
    Prediction prediction{.mean = cross.transpose() * weights_, .deviation = VectorXd(points.cols())};
    factor_.matrixL().solveInPlace(cross);
    for (Index i = 0; i < points.cols(); ++i) {
        const double own = kernel(points.col(i), points.col(i), log_scales_).sum(0, 0);
        prediction.deviation[i] = std::sqrt(std::max(least_variance, own - cross.col(i).squaredNorm()));
    }
    return prediction;
}

double GaussianProcess::lower_bound(const VectorXd& point, double kappa, VectorXd& gradient) const {
    const ArrayXd of = log_scales_.tail(variances).array().exp();
    const Kernel known = kernel(points_, point, log_scales_);
    const Kernel own = kernel(point, point, log_scales_);
    const VectorXd cross = known.sum.matrix();
    VectorXd solved = factor_.matrixL().solve(cross);
    const double deviation = std::sqrt(std::max(least_variance, own.sum(0, 0) - solved.squaredNorm()));
    factor_.matrixU().solveInPlace(solved);
    // The gradient of μ − κσ follows from the chain rule. The derivative of μ − κσ with respect to k is α + κ/σ K⁻¹k,
    // and with respect to k(x, x) it is −κ/2σ. The derivative of k with respect to x is the slope times (known point −
    // x)/l², plus the known point times v₁ + 2v₂p.
    const VectorXd by_cross = weights_ + kappa / deviation * solved;
    const VectorXd by_distance = known.slope.matrix().cwiseProduct(by_cross);
    const VectorXd by_inner = (of[linear] + 2 * of[quadratic] * known.inner).matrix().cwiseProduct(by_cross);
    gradient = (points_ * by_distance - by_distance.sum() * point).array() *
               (-2 * log_scales_.head(point.size()).array()).exp();
    gradient += points_ * by_inner - kappa / deviation * (of[linear] + 2 * of[quadratic] * own.inner(0, 0)) * point;
    gradient = gradient.cwiseProduct(is_number_);
    return cross.dot(weights_) - kappa * deviation;
}

}  // namespace finch::search
