#include "finch/search/function.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace finch::search {
namespace {

using Point = std::span<const double>;
constexpr double two_pi = 2 * std::numbers::pi;

/// Returns the sum of term(x) over all coordinates.
template <class Term>
double sum(Point x, const Term& term) {
    return std::accumulate(x.begin(), x.end(), 0.0, [&](double so_far, double xi) { return so_far + term(xi); });
}

double square(double value) {
    return value * value;
}

double sphere(Point x) {
    return sum(x, square);
}

double rosenbrock(Point x) {
    double value = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        value += 100 * square(x[i + 1] - square(x[i])) + square(1 - x[i]);
    }
    return value;
}

double rastrigin(Point x) {
    return sum(x, [](double xi) { return 10 + square(xi) - 10 * std::cos(two_pi * xi); });
}

double griewank(Point x) {
    double product = 1;
    for (std::size_t i = 0; i < x.size(); ++i) {
        product *= std::cos(x[i] / std::sqrt(static_cast<double>(i + 1)));
    }
    return 1 + sum(x, square) / 4000 - product;
}

double schwefel(Point x) {
    constexpr double deepest = 418.982887272433706;  // largest x sin √x, at x = 420.968746…
    return sum(x, [](double xi) { return deepest - xi * std::sin(std::sqrt(std::abs(xi))); });
}

constexpr double first_funnel = 2.5;  // μ1; Lunacek's d is 1

double birastrigin(Point x) {
    const auto n = static_cast<double>(x.size());
    const double s = 1 - std::sqrt(1 / (2 * std::sqrt(n + 20) - 8.2));
    const double second_funnel = -std::sqrt((square(first_funnel) - 1) / s);
    const double first = sum(x, [](double xi) { return square(xi - first_funnel); });
    const double second = sum(x, [second_funnel](double xi) { return square(xi - second_funnel); });
    return std::min(first, n + s * second) +
           10 * sum(x, [](double xi) { return 1 - std::cos(two_pi * (xi - first_funnel)); });
}

std::vector<Function> make_functions() {
    const auto within = [](double reach) { return RealGene{-reach, reach, Scale::linear}; };
    return {
        {"sphere", 2, 1, within(5.12), {0}, "De Jong 1975, F1", sphere},
        {"rosenbrock", 2, 2, within(2.048), {1}, "Rosenbrock 1960 (De Jong's F2), summed over neighbours", rosenbrock},
        {"rastrigin", 20, 1, within(5.12), {0}, "Rastrigin 1974", rastrigin},
        {"griewank", 10, 1, within(600), {0}, "Griewank 1981", griewank},
        {"schwefel",
         10,
         1,
         within(500),
         {420.96874635998203},
         "Schwefel 1981, with the constant to 17 digits (Propulate: 9)",
         schwefel,
         true},
        {"birastrigin",
         30,
         2,
         within(5.12),
         {first_funnel},
         "Lunacek, Whitley and Sutton 2008, in Propulate's variant: s = 1 - sqrt(1 / (2 sqrt(n + 20) - 8.2))",
         birastrigin},
    };
}

void require_dimension(const Function& function, int dimensions) {
    if (dimensions < function.least_dimensions) {
        throw ConfigError(
            fmt::format("{} has {} dimensions or more, not {}", function.name, function.least_dimensions, dimensions));
    }
}

}  // namespace

std::span<const Function> functions() {
    static const std::vector<Function> all = make_functions();
    return all;
}

const Function& find_function(std::string_view name) {
    std::vector<std::string> names;
    for (const Function& function : functions()) {
        if (function.name == name) {
            return function;
        }
        names.push_back(function.name);
    }
    std::stable_sort(names.begin(), names.end(), [&name](const std::string& a, const std::string& b) {
        return edit_distance(name, a) < edit_distance(name, b);
    });
    throw ConfigError(fmt::format("there is no function \"{}\"; there are {}", name, join(names)));
}

Space function_space(const Function& function, int dimensions) {
    require_dimension(function, dimensions);
    Space space;
    for (std::size_t i = 0; i < static_cast<std::size_t>(dimensions); ++i) {
        space.genes.push_back({fmt::format("x{}", i), function.bounds});
    }
    return space;
}

namespace {

constexpr double inner_share = 0.8;  ///< fraction of the box's half width in which a shifted optimum must be

std::vector<double> random_optimum(const RealGene& bounds, std::size_t dimensions, RandomStream& random) {
    const double center = (bounds.low + bounds.high) / 2;
    const double reach = inner_share * (bounds.high - bounds.low) / 2;
    std::vector<double> optimum(dimensions);
    std::generate(optimum.begin(), optimum.end(), [&] { return random.uniform(center - reach, center + reach); });
    return optimum;
}

double dot(std::span<const double> a, std::span<const double> b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Returns a uniformly random orthogonal (n, n) matrix: rows of normal random numbers, made orthogonal by the
/// Gram-Schmidt process. Two passes of this process are enough (Giraud, Langou and Rozložník 2005).
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
    : function_(&function), origin_(function.optimum), is_transformed_(transform.shift || transform.rotate) {
    require_dimension(function, dimensions);
    origin_.resize(static_cast<std::size_t>(dimensions), function.optimum.front());
    optimum_ = origin_;
    const auto instance = static_cast<std::uint64_t>(transform.instance);
    if (transform.shift) {
        RandomStream random(instance, Purpose::function_shift);
        optimum_ = random_optimum(function.bounds, optimum_.size(), random);
    }
    if (transform.rotate) {
        RandomStream random(instance, Purpose::function_rotation);
        rotation_ = random_rotation(optimum_.size(), random);
    }
}

double FunctionInstance::value(std::span<const double> x) const {
    if (x.size() != optimum_.size()) {
        throw ConfigError(fmt::format("{} has {} dimensions here, not {}", function_->name, optimum_.size(), x.size()));
    }
    if (!is_transformed_) {
        return function_->value(x);
    }
    std::vector<double> z = argument(x);
    return function_->falls_outside ? value_near_box(z) : function_->value(z);
}

/// Returns o + R (x − o').
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

double FunctionInstance::value_near_box(std::vector<double>& z) const {
    double distance_squared = 0;
    for (double& zi : z) {
        const double inside = std::clamp(zi, function_->bounds.low, function_->bounds.high);
        distance_squared += square(zi - inside);
        zi = inside;
    }
    return function_->value(z) + distance_squared;
}

void evaluate(const FunctionInstance& instance, Individual& individual) {
    individual.loss = instance.value(individual.genome);
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
