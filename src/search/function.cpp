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

double sphere(Point x, RandomStream*) {
    return sum(x, square);
}

double rosenbrock(Point x, RandomStream*) {
    double value = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        value += 100 * square(x[i + 1] - square(x[i])) + square(1 - x[i]);
    }
    return value;
}

double step(Point x, RandomStream*) {
    return sum(x, [](double xi) { return std::trunc(xi); });
}

double quartic(Point x, RandomStream* noise) {
    double value = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        value += static_cast<double>(i + 1) * square(square(x[i])) + (noise != nullptr ? noise->normal() : 0);
    }
    return std::abs(value);
}

/// Both terms of Ackley's function are exactly 0 at the origin, and never negative.
double ackley(Point x, RandomStream*) {
    const auto n = static_cast<double>(x.size());
    const double waves = sum(x, [](double xi) { return std::cos(two_pi * xi); }) / n;
    return -20 * std::expm1(-0.2 * std::sqrt(sum(x, square) / n)) - std::exp(1) * std::expm1(waves - 1);
}

double ellipsoid(Point x, RandomStream*) {
    constexpr double condition = 1e6;
    double value = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double axis = x.size() > 1 ? static_cast<double>(i) / static_cast<double>(x.size() - 1) : 0;
        value += std::pow(condition, axis) * square(x[i]);
    }
    return value;
}

double rastrigin(Point x, RandomStream*) {
    return sum(x, [](double xi) { return 10 + square(xi) - 10 * std::cos(two_pi * xi); });
}

double griewank(Point x, RandomStream*) {
    double product = 1;
    for (std::size_t i = 0; i < x.size(); ++i) {
        product *= std::cos(x[i] / std::sqrt(static_cast<double>(i + 1)));
    }
    return 1 + sum(x, square) / 4000 - product;
}

double schwefel(Point x, RandomStream*) {
    constexpr double deepest = 418.982887272433706;  // largest x sin √x, at x = 420.968746…
    return sum(x, [](double xi) { return deepest - xi * std::sin(std::sqrt(std::abs(xi))); });
}

constexpr double first_funnel = 2.5;  // μ1; Lunacek's d is 1

double bisphere(Point x, RandomStream*) {
    const auto n = static_cast<double>(x.size());
    const double s = 1 - std::sqrt(1 / (2 * std::sqrt(n + 20) - 8.2));
    const double second_funnel = -std::sqrt((square(first_funnel) - 1) / s);
    const double first = sum(x, [](double xi) { return square(xi - first_funnel); });
    const double second = sum(x, [second_funnel](double xi) { return square(xi - second_funnel); });
    return std::min(first, n + s * second);
}

double birastrigin(Point x, RandomStream* noise) {
    return bisphere(x, noise) + 10 * sum(x, [](double xi) { return 1 - std::cos(two_pi * (xi - first_funnel)); });
}

double bukin_n6(Point x, RandomStream*) {
    return 100 * std::sqrt(std::abs(x[1] - 0.01 * square(x[0]))) + 0.01 * std::abs(x[0] + 10);
}

double eggcrate(Point x, RandomStream*) {
    return sum(x, [](double xi) { return square(xi) + 25 * square(std::sin(xi)); });
}

double himmelblau(Point x, RandomStream*) {
    return square(square(x[0]) + x[1] - 11) + square(x[0] + square(x[1]) - 7);
}

double keane(Point x, RandomStream*) {
    const double distance = std::hypot(x[0], x[1]);
    const double height = square(std::sin(x[0] - x[1])) * square(std::sin(x[0] + x[1]));
    return distance > 0 ? -height / distance : 0;  // the limit at the origin
}

double leon(Point x, RandomStream*) {
    return 100 * square(x[1] - x[0] * square(x[0])) + square(1 - x[0]);
}

std::vector<Function> make_functions() {
    const auto within = [](double reach) { return std::vector{RealGene{-reach, reach, Scale::linear}}; };
    const std::vector<RealGene> to_ten{{0, 10, Scale::linear}};
    const std::string lunacek =
        "Lunacek, Whitley and Sutton 2008, in Propulate's variant: s = 1 - sqrt(1 / (2 sqrt(n + 20) - 8.2))";
    return {
        {"sphere", 2, true, within(5.12), {0}, 0, "De Jong 1975, F1", 1, sphere},
        {"rosenbrock",
         2,
         true,
         within(2.048),
         {1},
         0,
         "Rosenbrock 1960 (De Jong's F2), summed over neighbours",
         2,
         rosenbrock},
        {.name = "step",
         .default_dimensions = 5,
         .bounds = within(5.12),
         .optimum = {-5.12},
         .source = "De Jong 1975, F3, in Propulate's variant: truncates toward zero",
         .value = step,
         .minimum_per_gene = -5,
         .falls_outside = true},
        {.name = "quartic",
         .default_dimensions = 30,
         .bounds = within(1.28),
         .optimum = {0},
         .source = "De Jong 1975, F4, in Propulate's variant: the absolute value, and noise in every term",
         .value = quartic,
         .has_noise = true},
        {"rastrigin", 20, true, within(5.12), {0}, 0, "Rastrigin 1974", 1, rastrigin},
        {"griewank", 10, true, within(600), {0}, 0, "Griewank 1981", 1, griewank},
        {.name = "schwefel",
         .default_dimensions = 10,
         .bounds = within(500),
         .optimum = {420.96874635998203},
         .source = "Schwefel 1981, with the constant to 17 digits (Propulate: 9)",
         .value = schwefel,
         .falls_outside = true},
        {"bisphere", 30, true, within(5.12), {first_funnel}, 0, lunacek, 2, bisphere},
        {"birastrigin", 30, true, within(5.12), {first_funnel}, 0, lunacek, 2, birastrigin},
        {"bukin_n6",
         2,
         false,
         {{-15, -5, Scale::linear}, {-3, 3, Scale::linear}},
         {-10, 1},
         0,
         "Bukin 1997, no. 6",
         2,
         bukin_n6},
        {"eggcrate", 2, false, within(5), {0}, 0, "Yang 2010, egg crate", 2, eggcrate},
        {"himmelblau", 2, false, within(6), {3, 2}, 0, "Himmelblau 1972", 2, himmelblau},
        {"keane",
         2,
         false,
         to_ten,
         {1.393249075325585, 0},
         -0.673667521146855,
         "Keane 1994, negated, without constraints",
         2,
         keane},
        {"leon", 2, false, to_ten, {1}, 0, "Leon 1966, with the cube", 2, leon},
        {"ackley", 20, true, within(32.768), {0}, 0, "Ackley 1987, with Bäck's constants 20, 0.2 and 2 pi", 1, ackley},
        {"ellipsoid",
         20,
         true,
         within(5),
         {0},
         0,
         "Hansen and Ostermeier 2001, axes of a condition of 1e6",
         1,
         ellipsoid},
    };
}

/// Returns the value for gene `i`. `values` has either one value for all genes or one value per gene.
template <class Values>
const auto& of_gene(const Values& values, std::size_t i) {
    return values[values.size() > 1 ? i : 0];
}

void require_dimension(const Function& function, int dimensions) {
    if (function.any_dimensions ? dimensions < function.least_dimensions : dimensions != function.default_dimensions) {
        throw ConfigError(fmt::format("{} has {} dimensions, not {}", function.name,
                                      function.any_dimensions ? fmt::format("{} or more", function.least_dimensions)
                                                              : fmt::format("{}", function.default_dimensions),
                                      dimensions));
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
        space.genes.push_back({fmt::format("x{}", i), of_gene(function.bounds, i)});
    }
    return space;
}

double minimum_of(const Function& function, int dimensions) {
    require_dimension(function, dimensions);
    return function.minimum + dimensions * function.minimum_per_gene;
}

std::vector<double> optimum_of(const Function& function, int dimensions) {
    require_dimension(function, dimensions);
    std::vector<double> optimum;
    for (std::size_t i = 0; i < static_cast<std::size_t>(dimensions); ++i) {
        optimum.push_back(of_gene(function.optimum, i));
    }
    return optimum;
}

double evaluate(const Function& function, std::span<const double> x, RandomStream& noise) {
    require_dimension(function, static_cast<int>(x.size()));
    return function.value(x, &noise);
}

double evaluate_without_noise(const Function& function, std::span<const double> x) {
    require_dimension(function, static_cast<int>(x.size()));
    return function.value(x, nullptr);
}

namespace {

constexpr double inner_share = 0.8;  ///< fraction of the box's half width in which a shifted optimum must be

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
