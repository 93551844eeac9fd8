#include "cma_es.hpp"

#include "normal.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace finch::search {
namespace {

Eigen::VectorXd vector_of(const UnitGenome& point) {
    return Eigen::Map<const Eigen::VectorXd>(point.data(), std::ssize(point));
}

Eigen::VectorXd normals(Eigen::Index count, RandomStream& random) {
    Eigen::VectorXd z(count);
    for (double& value : z) {
        value = random.normal();
    }
    return z;
}

double squared(double x) {
    return x * x;
}

double median_of(std::vector<double> values) {
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Returns whether the median of the newest 30 % of `values` is smaller than the median of the oldest 30 %.
bool has_fallen(std::span<const double> values) {
    const auto part = static_cast<std::ptrdiff_t>(0.3 * static_cast<double>(values.size()));
    return median_of({values.end() - part, values.end()}) < median_of({values.begin(), values.begin() + part});
}

}  // namespace

// Householder reflections of random vectors of n, n − 1, … 1 numbers make a uniformly random orthogonal matrix
// (Stewart, "The Efficient Generation of Random Orthogonal Matrices", 1980). One column of it needs n² operations.
Eigen::VectorXd mirrored_normals(Eigen::Index genes, std::uint64_t number, std::uint64_t seed, std::uint32_t island) {
    const auto in_block = 2 * static_cast<std::uint64_t>(genes);
    RandomStream of_block(seed, Purpose::mirrored_samples, number / in_block, 2 * island);
    RandomStream of_pair(seed, Purpose::mirrored_samples, number / 2, 2 * island + 1);
    std::vector<Eigen::VectorXd> reflections;
    for (Eigen::Index count = genes; count > 0; --count) {
        reflections.push_back(normals(count, of_block));
        Eigen::VectorXd& v = reflections.back();
        v[0] += std::copysign(v.norm(), v[0]);
    }
    Eigen::VectorXd z = Eigen::VectorXd::Unit(genes, static_cast<Eigen::Index>(number % in_block / 2));
    for (auto v = reflections.rbegin(); v != reflections.rend(); ++v) {
        z.tail(v->size()) -= 2 * v->dot(z.tail(v->size())) / v->squaredNorm() * *v;
    }
    const double length = normals(genes, of_pair).norm();
    return number % 2 == 0 ? Eigen::VectorXd(length * z) : Eigen::VectorXd(-length * z);
}

CmaEs::CmaEs(const UnitGenome& mean, double sigma, CmaEsSettings settings)
    : n_(std::ssize(mean)),
      lambda_(settings.samples > 0 ? std::max(settings.samples, 4)
                                   : 4 + static_cast<int>(3 * std::log(static_cast<double>(n_)))),
      weights_(lambda_),
      thresholds_(std::move(settings.thresholds)),
      flat_(settings.flat),
      mean_(vector_of(mean)),
      extents_(Eigen::VectorXd::Ones(n_)),
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
    keep_margins();
}

Eigen::VectorXd CmaEs::point_at(const Eigen::VectorXd& z) const {
    const Eigen::VectorXd x = mean_ + sigma_ * (axes_ * lengths_.cwiseProduct(z));
    return thresholds_.empty() ? x : mean_ + extents_.cwiseProduct(x - mean_);
}

/// Returns whether all real coordinates are within their bounds.
bool CmaEs::is_within_bounds(const Eigen::VectorXd& x) const {
    const double beyond = thresholds_.empty() ? 0 : bend;
    for (Eigen::Index i = 0; i < n_; ++i) {
        const bool is_real = thresholds_.empty() || thresholds_[static_cast<std::size_t>(i)].empty();
        if (is_real && !(-beyond <= x[i] && x[i] <= 1 + beyond)) {
            return false;
        }
    }
    return true;
}

UnitGenome CmaEs::sample(RandomStream& random) const {
    return sample(random, normals(n_, random));
}

UnitGenome CmaEs::sample(RandomStream& random, const Eigen::VectorXd& z) const {
    constexpr int tries = 5;
    Eigen::VectorXd x = point_at(z);
    for (int attempt = 1; attempt < tries && !is_within_bounds(x); ++attempt) {
        x = point_at(normals(n_, random));
    }
    UnitGenome point(x.begin(), x.end());
    for (std::size_t i = 0; i < point.size(); ++i) {
        point[i] = thresholds_.empty()      ? reflect(point[i])
                   : thresholds_[i].empty() ? bounded(point[i])
                                            : std::clamp(point[i], 0.0, 1.0);
    }
    return point;
}

void CmaEs::take(const UnitGenome& point, double loss) {
    if (loss < best_loss_) {
        best_loss_ = loss;
        best_point_ = point;
    }
    add({vector_of(point), loss});
}

void CmaEs::take(const UnitGenome& point, double loss, RandomStream& random) {
    if (loss < best_loss_) {
        best_loss_ = loss;
        best_point_ = point;
    }
    add({completed(point, random), loss});
}

void CmaEs::add(Sample sample) {
    samples_.push_back(std::move(sample));
    if (std::ssize(samples_) >= lambda_) {
        end_generation();
    }
}

/// Draws the coordinates that `point` leaves open, by two sweeps of Gibbs sampling.
Eigen::VectorXd CmaEs::completed(const UnitGenome& point, RandomStream& random) const {
    constexpr int sweeps = 2;
    Eigen::VectorXd low(n_);  // of y
    Eigen::VectorXd high(n_);
    Eigen::VectorXd y(n_);
    std::vector<Eigen::Index> open;
    for (Eigen::Index i = 0; i < n_; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const bool is_real = thresholds_[at].empty();
        const Cell cell = cell_at(thresholds_[at], is_real ? unbounded(point[at]) : point[at]);
        low[i] = (cell.low - mean_[i]) / (sigma_ * extents_[i]);
        high[i] = (cell.high - mean_[i]) / (sigma_ * extents_[i]);
        y[i] = std::clamp(0.0, low[i], high[i]);
        if (low[i] < high[i]) {
            open.push_back(i);
        }
    }
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        for (const Eigen::Index i : open) {
            // Row i of C^(−1) determines the normal distribution of y[i], given the other coordinates.
            const Eigen::VectorXd row = axes_ * axes_.row(i).transpose().cwiseQuotient(lengths_.cwiseAbs2());
            const double deviation = 1 / std::sqrt(row[i]);
            const double mean = y[i] - row.dot(y) / row[i];
            y[i] =
                mean + deviation * truncated_normal((low[i] - mean) / deviation, (high[i] - mean) / deviation, random);
        }
    }
    return mean_ + sigma_ * y;
}

Eigen::VectorXd CmaEs::whitened(const Eigen::VectorXd& y) const {
    return axes_ * (axes_.transpose() * y).cwiseQuotient(lengths_);
}

void CmaEs::end_generation() {
    std::stable_sort(samples_.begin(), samples_.end(),
                     [](const Sample& a, const Sample& b) { return a.loss < b.loss; });
    history_.push_back(samples_.front().loss);
    medians_.push_back(samples_[samples_.size() / 2].loss);
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
    const double beyond = thresholds_.empty() ? 0 : bend;
    mean_ = (mean_ + sigma_ * step).cwiseMax(-beyond).cwiseMin(1 + beyond);
    path_sigma_ = (1 - c_sigma_) * path_sigma_ + std::sqrt(c_sigma_ * (2 - c_sigma_) * mu_eff_) * whitened(step);
    const double norm = path_sigma_.norm();
    const double scale = std::sqrt(1 - std::pow(1 - c_sigma_, 2.0 * static_cast<double>(generation_)));
    const bool may_grow = norm / scale < (1.4 + 2 / (n + 1)) * expected_norm_;
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
    keep_margins();
    look_for_end();
}

void CmaEs::keep_margins() {
    const double alpha = 1 / static_cast<double>(n_ * lambda_);
    for (std::size_t i = 0; i < thresholds_.size(); ++i) {
        const auto at = static_cast<Eigen::Index>(i);
        keep_margin(thresholds_[i], sigma_ * std::sqrt(covariance_(at, at)), alpha, mean_[at], extents_[at]);
    }
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
        has_ended_ = has_ended_ || *most - *least <= flat_;
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

bool CmaEs::has_stagnated() const {
    constexpr std::size_t most = 20'000;
    const auto some = 120 + static_cast<std::size_t>(30 * n_ / lambda_);
    const std::size_t length = std::clamp(history_.size() / 5, some, most);
    return history_.size() >= length && !has_fallen(std::span(history_).last(length)) &&
           !has_fallen(std::span(medians_).last(length));
}

}  // namespace finch::search
