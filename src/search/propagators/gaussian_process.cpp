#include "gaussian_process.hpp"

#include "unit_genome.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace finch::search {
namespace {

// Of the priors: normal in the logarithm.
constexpr double usual_length = 0.7;
constexpr double length_spread = 1;
constexpr double usual_noise = 0.05;
constexpr double noise_spread = 1.5;
constexpr double least_log_noise = -9;
constexpr double jitter = 1e-6;

}  // namespace

GaussianProcess::GaussianProcess(const Space& space)
    : log_lengths_(Eigen::VectorXd::Constant(std::ssize(space.genes), std::log(0.5))),
      log_noise_(std::log(usual_noise)) {
    for (const Gene& gene : space.genes) {
        is_choice_.push_back(is_choice(gene) ? 1 : 0);
    }
}

double GaussianProcess::noise() const noexcept {
    return std::exp(log_noise_);
}

Eigen::MatrixXd GaussianProcess::kernel(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                        const Eigen::VectorXd& log_lengths) const {
    Eigen::ArrayXXd squares = Eigen::ArrayXXd::Zero(a.cols(), b.cols());
    for (Eigen::Index gene = 0; gene < a.rows(); ++gene) {
        const double scale = std::exp(-2 * log_lengths[gene]);
        for (Eigen::Index j = 0; j < b.cols(); ++j) {
            const auto apart = a.row(gene).transpose().array() - b(gene, j);
            if (is_choice_[static_cast<std::size_t>(gene)] != 0) {
                squares.col(j) += scale * (apart != 0).cast<double>();
            } else {
                squares.col(j) += scale * apart.square();
            }
        }
    }
    const Eigen::ArrayXXd distance = (5 * squares).sqrt();
    return (1 + distance + distance.square() / 3) * (-distance).exp();
}

double GaussianProcess::log_posterior(const Eigen::MatrixXd& points, const Eigen::VectorXd& values,
                                      const Eigen::VectorXd& log_lengths, double log_noise) const {
    Eigen::MatrixXd covariance = kernel(points, points, log_lengths);
    covariance.diagonal().array() += std::exp(log_noise) + jitter;
    const Factor factor(covariance);
    if (factor.info() != Eigen::Success) {
        return -std::numeric_limits<double>::infinity();
    }
    const double fit = -0.5 * values.dot(factor.solve(values));
    const double complexity = -factor.matrixLLT().diagonal().array().log().sum();
    const double of_lengths = -0.5 * ((log_lengths.array() - std::log(usual_length)) / length_spread).square().sum();
    const double noise = (log_noise - std::log(usual_noise)) / noise_spread;
    const double of_noise = -0.5 * noise * noise;
    return fit + complexity + of_lengths + of_noise;
}

/// Half of the scales at a time, with steps that grow where they help.
void GaussianProcess::fit(const Eigen::MatrixXd& points, const Eigen::VectorXd& values, int tries,
                          RandomStream& random) {
    double best = log_posterior(points, values, log_lengths_, log_noise_);
    double step = 1;
    for (int attempt = 0; attempt < tries; ++attempt) {
        Eigen::VectorXd log_lengths = log_lengths_;
        double log_noise = log_noise_;
        for (double& length : log_lengths) {
            length += random.uniform() < 0.5 ? step * random.normal() : 0;
        }
        log_noise += random.uniform() < 0.5 ? step * random.normal() : 0;
        log_noise = std::max(log_noise, least_log_noise);
        const double found = log_posterior(points, values, log_lengths, log_noise);
        if (found > best) {
            best = found;
            log_lengths_ = log_lengths;
            log_noise_ = log_noise;
            step *= 1.3;
        } else {
            step = std::max(0.2, 0.93 * step);
        }
    }
}

void GaussianProcess::condition(const Eigen::MatrixXd& points, const Eigen::VectorXd& values) {
    points_ = points;
    Eigen::MatrixXd covariance = kernel(points, points, log_lengths_);
    covariance.diagonal().array() += noise() + jitter;
    factor_.emplace(covariance);
    weights_ = factor_->solve(values);
}

GaussianProcess::Prediction GaussianProcess::predict(const Eigen::MatrixXd& points) const {
    Eigen::MatrixXd covariance = kernel(points_, points, log_lengths_);
    Prediction prediction;
    prediction.mean = covariance.transpose() * weights_;
    factor_->matrixL().solveInPlace(covariance);
    prediction.deviation = (1 - covariance.colwise().squaredNorm().transpose().array()).cwiseMax(1e-9).sqrt().matrix();
    return prediction;
}

}  // namespace finch::search
