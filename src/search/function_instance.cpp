#include "finch/search/function_instance.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace finch::search {
namespace {

constexpr double inner_share = 0.8;  ///< of the box's half width, that a moved optimum keeps to

std::vector<RealGene> bounds_of(const Function& function, int dimensions) {
    std::vector<RealGene> bounds;
    for (const Gene& gene : function_space(function, dimensions).genes) {
        bounds.push_back(std::get<RealGene>(gene.kind));
    }
    return bounds;
}

std::vector<double> random_optimum(const std::vector<RealGene>& bounds, RandomStream& random) {
    std::vector<double> optimum;
    for (const RealGene& gene : bounds) {
        const double center = (gene.low + gene.high) / 2;
        const double reach = inner_share * (gene.high - gene.low) / 2;
        optimum.push_back(random.uniform(center - reach, center + reach));
    }
    return optimum;
}

double dot(std::span<const double> a, std::span<const double> b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// A uniformly random orthogonal (n, n) matrix: normal rows, made orthogonal (Gram and Schmidt; twice, which is enough:
/// Giraud, Langou and Rozložník 2005).
std::vector<double> random_rotation(std::size_t n, RandomStream& random) {
    std::vector<double> matrix(n * n);
    std::generate(matrix.begin(), matrix.end(), [&random] { return random.normal(); });
    for (std::size_t i = 0; i < n; ++i) {
        const std::span<double> row(&matrix[i * n], n);
        for (std::size_t other = 0; other < 2 * i; ++other) {
            const std::span<const double> done(&matrix[(other % i) * n], n);
            const double along = dot(row, done);
            std::transform(row.begin(), row.end(), done.begin(), row.begin(),
                           [along](double a, double b) { return a - along * b; });
        }
        const double length = std::sqrt(dot(row, row));
        std::transform(row.begin(), row.end(), row.begin(), [length](double a) { return a / length; });
    }
    return matrix;
}

}  // namespace

FunctionInstance::FunctionInstance(const Function& function, int dimensions, const Transform& transform)
    : function_(&function),
      origin_(optimum_of(function, dimensions)),
      optimum_(origin_),
      bounds_(bounds_of(function, dimensions)),
      is_transformed_(transform.shift || transform.rotate) {
    const auto instance = static_cast<std::uint64_t>(transform.instance);
    if (transform.shift) {
        RandomStream random(instance, Purpose::function_shift);
        optimum_ = random_optimum(bounds_, random);
    }
    if (transform.rotate) {
        RandomStream random(instance, Purpose::function_rotation);
        rotation_ = random_rotation(optimum_.size(), random);
    }
}

double FunctionInstance::value(std::span<const double> x, RandomStream* noise) const {
    if (x.size() != optimum_.size()) {
        throw ConfigError(fmt::format("{} has {} dimensions here, not {}", function_->name, optimum_.size(), x.size()));
    }
    if (!is_transformed_) {
        return function_->value(x, noise);
    }
    std::vector<double> z = argument(x);
    return function_->falls_outside ? value_near_box(z, noise) : function_->value(z, noise);
}

/// o + R (x − o')
std::vector<double> FunctionInstance::argument(std::span<const double> x) const {
    const std::size_t n = x.size();
    std::vector<double> away(n);
    std::transform(x.begin(), x.end(), optimum_.begin(), away.begin(), std::minus<>());
    std::vector<double> z = origin_;
    for (std::size_t i = 0; i < n; ++i) {
        z[i] += rotation_.empty() ? away[i] : dot({&rotation_[i * n], n}, away);
    }
    return z;
}

double FunctionInstance::value_near_box(std::vector<double>& z, RandomStream* noise) const {
    double distance_squared = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
        const double inside = std::clamp(z[i], bounds_[i].low, bounds_[i].high);
        distance_squared += (z[i] - inside) * (z[i] - inside);
        z[i] = inside;
    }
    return function_->value(z, noise) + distance_squared;
}

void evaluate(const FunctionInstance& instance, std::uint64_t seed, Individual& individual) {
    RandomStream noise(seed, Purpose::function_noise, individual.id.value);
    individual.loss = instance.value(individual.genome, &noise);
    individual.outcome = std::isfinite(individual.loss) ? Outcome::evaluated : Outcome::diverged;
}

double PretendedDuration::seconds(std::uint64_t seed, Id individual) const {
    RandomStream random(seed, Purpose::pretended_duration, individual.value);
    if (!recorded_seconds.empty()) {
        return recorded_seconds[random.below(recorded_seconds.size())];
    }
    return median_seconds > 0 ? median_seconds * std::exp(spread * random.normal()) : 0;
}

}  // namespace finch::search
