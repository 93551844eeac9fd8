#include "cma_es.hpp"

#include <algorithm>
#include <cmath>

namespace finch::search {
namespace {

Eigen::VectorXd vector_of(const UnitGenome& point) {
    return Eigen::Map<const Eigen::VectorXd>(point.data(), std::ssize(point));
}

double squared(double x) {
    return x * x;
}

}  // namespace

CmaEs::CmaEs(const UnitGenome& mean, double sigma, int samples)
    : n_(std::ssize(mean)),
      lambda_(samples > 0 ? std::max(samples, 4) : 4 + static_cast<int>(3 * std::log(static_cast<double>(n_)))),
      weights_(lambda_),
      mean_(vector_of(mean)),
      sigma_(sigma),
      covariance_(Eigen::MatrixXd::Identity(n_, n_)),
      axes_(covariance_),
      lengths_(Eigen::VectorXd::Ones(n_)),
      path_c_(Eigen::VectorXd::Zero(n_)),
      path_sigma_(path_c_),
      best_point_(mean) {
    for (int i = 0; i < lambda_; ++i) {
        weights_[i] = std::log((lambda_ + 1) / 2.0) - std::log(i + 1.0);
    }
    const double n = static_cast<double>(n_);
    const Eigen::VectorXd positive = weights_.cwiseMax(0);
    const Eigen::VectorXd negative = weights_.cwiseMin(0);
    mu_eff_ = squared(positive.sum()) / positive.squaredNorm();
    const double mu_eff_negative = squared(negative.sum()) / negative.squaredNorm();
    c_sigma_ = (mu_eff_ + 2) / (n + mu_eff_ + 5);
    d_sigma_ = 1 + 2 * std::max(0.0, std::sqrt((mu_eff_ - 1) / (n + 1)) - 1) + c_sigma_;
    c_c_ = (4 + mu_eff_ / n) / (n + 4 + 2 * mu_eff_ / n);
    c_1_ = 2 / (squared(n + 1.3) + mu_eff_);
    c_mu_ = std::min(1 - c_1_, 2 * (0.25 + mu_eff_ + 1 / mu_eff_ - 2) / (squared(n + 2) + mu_eff_));
    expected_norm_ = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
    const double least =
        std::min({1 + c_1_ / c_mu_, 1 + 2 * mu_eff_negative / (mu_eff_ + 2), (1 - c_1_ - c_mu_) / (n * c_mu_)});
    weights_ = positive / positive.sum() + negative * (least / -negative.sum());
}

UnitGenome CmaEs::sample(RandomStream& random) const {
    constexpr int tries = 5;
    UnitGenome point(static_cast<std::size_t>(n_));
    for (int attempt = 0; attempt < tries; ++attempt) {
        Eigen::VectorXd z(n_);
        for (Eigen::Index i = 0; i < n_; ++i) {
            z[i] = random.normal();
        }
        const Eigen::VectorXd x = mean_ + sigma_ * (axes_ * lengths_.cwiseProduct(z));
        std::copy(x.begin(), x.end(), point.begin());
        if (x.minCoeff() >= 0 && x.maxCoeff() <= 1) {
            return point;
        }
    }
    std::transform(point.begin(), point.end(), point.begin(), reflect);
    return point;
}

void CmaEs::take(const UnitGenome& point, double loss) {
    if (loss < best_loss_) {
        best_loss_ = loss;
        best_point_ = point;
    }
    samples_.push_back({vector_of(point), loss});
    if (std::ssize(samples_) >= lambda_) {
        end_generation();
    }
}

Eigen::VectorXd CmaEs::whitened(const Eigen::VectorXd& y) const {
    return axes_ * (axes_.transpose() * y).cwiseQuotient(lengths_);
}

void CmaEs::end_generation() {
    std::stable_sort(samples_.begin(), samples_.end(),
                     [](const Sample& a, const Sample& b) { return a.loss < b.loss; });
    history_.push_back(samples_.front().loss);
    ++generation_;
    const double n = static_cast<double>(n_);
    const double most = std::sqrt(n) + 2 * n / (n + 2);
    Eigen::MatrixXd steps(n_, lambda_);
    Eigen::VectorXd norms(lambda_);
    for (Eigen::Index i = 0; i < lambda_; ++i) {
        const Eigen::VectorXd y = (samples_[static_cast<std::size_t>(i)].point - mean_) / sigma_;
        const double norm = whitened(y).norm();
        const double pulled = norm > most ? most / norm : 1;
        steps.col(i) = pulled * y;
        norms[i] = pulled * norm;
    }
    samples_.clear();

    const Eigen::VectorXd step = steps * weights_.cwiseMax(0);
    mean_ = (mean_ + sigma_ * step).cwiseMax(0).cwiseMin(1);
    path_sigma_ = (1 - c_sigma_) * path_sigma_ + std::sqrt(c_sigma_ * (2 - c_sigma_) * mu_eff_) * whitened(step);
    const double norm = path_sigma_.norm();
    const double settled = std::sqrt(1 - std::pow(1 - c_sigma_, 2.0 * static_cast<double>(generation_)));
    const bool may_grow = norm / settled < (1.4 + 2 / (n + 1)) * expected_norm_;
    path_c_ *= 1 - c_c_;
    if (may_grow) {
        path_c_ += std::sqrt(c_c_ * (2 - c_c_) * mu_eff_) * step;
    }
    sigma_ *= std::exp(std::min(1.0, c_sigma_ / d_sigma_ * (norm / expected_norm_ - 1)));

    Eigen::VectorXd weights = weights_;
    for (Eigen::Index i = 0; i < lambda_; ++i) {
        if (weights[i] < 0) {
            weights[i] *= n / (squared(norms[i]) + 1e-12);
        }
    }
    const double lost = may_grow ? 0 : c_1_ * c_c_ * (2 - c_c_);
    covariance_ = (1 + lost - c_1_ - c_mu_ * weights_.sum()) * covariance_ + c_1_ * path_c_ * path_c_.transpose() +
                  c_mu_ * steps * weights.asDiagonal() * steps.transpose();
    if (static_cast<double>(generation_ - decomposed_) >= 1 / ((c_1_ + c_mu_) * n * 10)) {
        decompose();
    }
    look_for_end();
}

void CmaEs::decompose() {
    decomposed_ = generation_;
    covariance_ = (covariance_ + covariance_.transpose()).eval() / 2;
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance_);
    axes_ = solver.eigenvectors();
    lengths_ = solver.eigenvalues().cwiseMax(1e-20).cwiseSqrt();
}

std::size_t CmaEs::window() const noexcept {
    return 10 + static_cast<std::size_t>(std::ceil(30.0 * static_cast<double>(n_) / lambda_));
}

void CmaEs::look_for_end() {
    const double longest = lengths_.maxCoeff();
    has_ended_ = has_ended_ || longest > 1e7 * lengths_.minCoeff() || sigma_ * longest < 1e-9;
    if (history_.size() >= window()) {
        const auto [least, most] =
            std::minmax_element(history_.end() - static_cast<std::ptrdiff_t>(window()), history_.end());
        has_ended_ = has_ended_ || *most - *least < 1e-10;
    }
}

bool CmaEs::is_hopeless(double target) const {
    const auto length = static_cast<std::ptrdiff_t>(window());
    if (std::ssize(history_) < 2 * length || best_loss_ <= target) {
        return false;
    }
    const double before = *std::min_element(history_.end() - 2 * length, history_.end() - length);
    const double now = *std::min_element(history_.end() - length, history_.end());
    return 4 * std::max(0.0, before - now) < best_loss_ - target;
}

}  // namespace finch::search
