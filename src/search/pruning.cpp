#include "finch/search/pruning.hpp"

#include "finch/base/loss_order.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace finch::search {
namespace {

Rungs rungs_of(const HalvingOptions& options) {
    return {options.first_epoch, options.factor};
}
Rungs rungs_of(const MedianOptions& options) {
    return {options.first_epoch, options.factor};
}
/// The pruning rule of CurveOptions makes no comparisons at rungs. The rungs of CurveOptions only tell which of two
/// pruned trainings got further.
Rungs rungs_of(const CurveOptions&) {
    return {};
}

/// Returns the loss of `other` at `rung`; infinity if no loss up to this rung was finite. Returns nothing if `other`
/// has not reached the rung, or has inherited it: the loss there is that of its parent.
std::optional<double> loss_at(const Individual& other, std::int32_t rung, const Rungs& rungs) {
    const double loss = other.pruning->losses.at(static_cast<std::size_t>(rung) - 1);
    if (!std::isnan(loss)) {
        return orderable_loss(loss);
    }
    const bool reached = other.is_complete() && rungs.passed(other.inherited_epochs) < rung;
    return reached ? std::optional(other.loss) : std::nullopt;
}

/// Calls `visit` with all other individuals that were born on the island of `individual`.
template <class Visitor>
void for_each_other(const Population& population, const Individual& individual, const Visitor& visit) {
    const int island = population.island_now(individual.island);
    for (const auto& [id, other] : population.individuals()) {
        const bool counts = id != individual.id && !other.is_repeat() && !other.is_reused();
        if (counts && population.island_now(other.island) == island) {
            visit(other);
        }
    }
}

/// Returns the values of `loss_of(other)` for all other individuals that were born on the island of `individual`.
template <class LossOf>
std::vector<double> losses_of_others(const Population& population, const Individual& individual,
                                     const LossOf& loss_of) {
    std::vector<double> losses;
    for_each_other(population, individual, [&](const Individual& other) {
        if (const std::optional<double> loss = loss_of(other)) {
            losses.push_back(*loss);
        }
    });
    return losses;
}

/// Returns the objectives of `one` at `rung`. A complete training that did not stop there has its final costs.
std::optional<ObjectiveValues> point_at(const Individual& one, std::int32_t rung, const Rungs& rungs,
                                        std::span<const Cost> costs) {
    const auto loss = loss_at(one, rung, rungs);
    if (!loss) {
        return std::nullopt;
    }
    ObjectiveValues point = point_of(one, costs);
    const auto place = static_cast<std::size_t>(rung) - 1;
    if (!std::isnan(one.pruning->losses.at(place))) {
        const auto& at_rung = one.pruning->costs.at(place);
        std::copy(at_rung.begin(), at_rung.end(), point.values.begin() + 1);
    }
    point.values.front() = *loss;
    return point;
}

/// Returns the number of trainings that continue at a rung that `reached` trainings have reached.
std::size_t promoted(const HalvingOptions& options, std::size_t reached) {
    return std::max<std::size_t>(1, reached / static_cast<std::size_t>(options.factor));
}
std::size_t promoted(const MedianOptions& options, std::size_t reached) {
    return static_cast<std::int64_t>(reached) <= options.least ? reached : (reached + 1) / 2;
}

/// With several objectives, a training continues if it is among the best by non-dominated sorting at its rung.
template <class AtRungs>
bool is_dominated_at(const AtRungs& options, std::int32_t rung, const Population& population,
                     const Individual& individual) {
    const Rungs rungs = rungs_of(options);
    std::vector<ObjectiveValues> points{*point_at(individual, rung, rungs, population.costs())};
    for_each_other(population, individual, [&](const Individual& other) {
        if (const auto point = point_at(other, rung, rungs, population.costs())) {
            points.push_back(*point);
        }
    });
    const std::size_t reached = points.size();
    return !is_among_best(std::move(points), 1 + population.costs().size(), individual.id, promoted(options, reached));
}

std::optional<double> threshold(const HalvingOptions& options, std::vector<double> others, double own) {
    others.push_back(own);
    return halving_threshold(std::move(others), options.factor);
}

std::optional<double> threshold(const MedianOptions& options, std::vector<double> others, double /*own*/) {
    return std::ssize(others) < options.least ? std::nullopt : std::optional(median_of(std::move(others)));
}

bool ends(const NoPruning&, std::span<const double>, std::int64_t, const Population&, Individual&) {
    return false;
}

template <class AtRungs>
bool ends(const AtRungs& options, std::span<const double> values, std::int64_t, const Population& population,
          Individual& individual) {
    const Rungs rungs = rungs_of(options);
    const std::int32_t rung = rungs.passed(std::ssize(values));
    if (rung <= individual.pruning->rung) {
        return false;
    }
    Pruning& pruning = individual.pruning.edit();
    const double own = smallest_loss(values.first(static_cast<std::size_t>(rungs.epoch_of(rung))));
    pruning.rung = rung;
    pruning.losses.at(static_cast<std::size_t>(rung) - 1) = own;
    if (const std::vector<Cost>& costs = population.costs(); !costs.empty()) {
        const ObjectiveValues point = point_of(individual, costs);
        std::copy(point.values.begin() + 1, point.values.end(),
                  pruning.costs.at(static_cast<std::size_t>(rung) - 1).begin());
        return is_dominated_at(options, rung, population, individual);
    }
    const auto at_rung = [&](const Individual& other) { return loss_at(other, rung, rungs); };
    const auto limit = threshold(options, losses_of_others(population, individual, at_rung), own);
    pruning.threshold = limit.value_or(pruning.threshold);
    return limit && is_better_loss(*limit, own);
}

bool ends(const CurveOptions& options, std::span<const double> values, std::int64_t epochs,
          const Population& population, Individual& individual) {
    if (const std::int32_t rung = rungs_of(options).passed(std::ssize(values)); rung > individual.pruning->rung) {
        individual.pruning.edit().rung = rung;
    }
    const auto optimistic = optimistic_end(values, epochs);
    if (std::ssize(values) < options.first_epoch || !optimistic) {
        return false;
    }
    const std::vector<double> complete = losses_of_others(population, individual, [](const Individual& other) {
        return other.is_complete() ? std::optional(other.loss) : std::nullopt;
    });
    if (std::ssize(complete) < options.least) {
        return false;
    }
    const double median = median_of(complete);
    individual.pruning.edit().threshold = median;
    return is_better_loss(median, *optimistic);
}

/// Returns the 90 % quantile of Student's t distribution.
double t_quantile(std::int64_t degrees) {
    constexpr std::array few{3.0777, 1.8856, 1.6377, 1.5332};
    if (degrees <= std::ssize(few)) {
        return few.at(static_cast<std::size_t>(degrees) - 1);
    }
    // The approximation is formula 26.7.5 of Abramowitz and Stegun.
    constexpr double z = 1.2815515655446004;
    const auto n = static_cast<double>(degrees);
    const double first = (std::pow(z, 3) + z) / 4;
    const double second = (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / 96;
    return z + first / n + second / (n * n);
}

/// Returns the 90 % quantile of the F distribution with 1 and `degrees` degrees of freedom. The result is the square of
/// the 95 % quantile of Student's t distribution.
double f_quantile(std::int64_t degrees) {
    constexpr std::array few{39.863, 8.5263, 5.5383, 4.5448};
    if (degrees <= std::ssize(few)) {
        return few.at(static_cast<std::size_t>(degrees) - 1);
    }
    constexpr double z = 1.6448536269514722;
    const auto n = static_cast<double>(degrees);
    const double first = (std::pow(z, 3) + z) / 4;
    const double second = (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / 96;
    return std::pow(z + first / n + second / (n * n), 2);
}

/// A finite value of a learning curve, with its epoch.
struct CurvePoint {
    double epoch = 0;
    double value = 0;
};

std::vector<CurvePoint> finite_points(std::span<const double> values) {
    std::vector<CurvePoint> points;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isfinite(values[i])) {
            points.push_back({static_cast<double>(i + 1), values[i]});
        }
    }
    return points;
}

/// A fitted line: values = a + b·x with x = epoch^−exponent.
struct Line {
    double exponent = 0;
    double mean_x = 0;
    double spread_x = 0;  ///< sum of squared deviations of x
    double mean = 0;
    double slope = 0;
    double squares = 0;  ///< sum of squared residuals
};

Line fit_line(std::span<const CurvePoint> points, double exponent) {
    Line line{.exponent = exponent};
    const auto n = static_cast<double>(points.size());
    std::vector<double> x;
    for (const CurvePoint& point : points) {
        x.push_back(std::pow(point.epoch, -exponent));
        line.mean_x += x.back() / n;
        line.mean += point.value / n;
    }
    double product = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        line.spread_x += (x[i] - line.mean_x) * (x[i] - line.mean_x);
        product += (x[i] - line.mean_x) * (points[i].value - line.mean);
    }
    line.slope = product / line.spread_x;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const double rest = points[i].value - line.mean - line.slope * (x[i] - line.mean_x);
        line.squares += rest * rest;
    }
    return line;
}

}  // namespace

std::int32_t Rungs::passed(std::int64_t epoch) const noexcept {
    std::int32_t count = 0;
    // The loop divides instead of multiplying, because the next rung may exceed the range of integers.
    for (std::int64_t left = epoch / first_epoch; left > 0 && count < static_cast<std::int32_t>(most_rungs);
         left /= factor) {
        ++count;
    }
    return count;
}

std::int64_t Rungs::epoch_of(std::int32_t rung) const noexcept {
    std::int64_t epoch = first_epoch;
    for (std::int32_t below = 1; below < rung; ++below) {
        epoch *= factor;
    }
    return epoch;
}

std::optional<Rungs> rungs_of(const PruningOptions& options) {
    return std::visit(
        []<class Rule>(const Rule& rule) -> std::optional<Rungs> {
            if constexpr (requires { rule.factor; }) {
                return Rungs{rule.first_epoch, rule.factor};
            }
            return std::nullopt;
        },
        options);
}

bool ends_early(const PruningOptions& options, std::span<const double> values, std::int64_t epochs,
                const Population& population, Individual& individual) {
    return !individual.is_repeat() &&
           std::visit([&](const auto& rule) { return ends(rule, values, epochs, population, individual); }, options);
}

double halving_threshold(std::vector<double> losses, std::int64_t factor) {
    const std::size_t count = promoted(HalvingOptions{.factor = factor}, losses.size());
    return loss_at_place(std::move(losses), count - 1);
}

double median_of(std::vector<double> losses) {
    const std::size_t middle = losses.size() / 2;
    const double upper = loss_at_place(losses, middle);
    return losses.size() % 2 == 1 ? upper : std::midpoint(loss_at_place(std::move(losses), middle - 1), upper);
}

std::optional<double> optimistic_end(std::span<const double> values, std::int64_t epoch) {
    constexpr int exponents = 40;
    constexpr double least_exponent = 0.05;
    constexpr double most_exponent = 4;
    const std::vector<CurvePoint> points = finite_points(values);
    const std::int64_t degrees = std::ssize(points) - 3;
    if (degrees < 1) {
        const bool has_no_hope = points.empty() && std::ssize(values) > 3;
        return has_no_hope ? std::optional(std::numeric_limits<double>::infinity()) : std::nullopt;
    }
    std::vector<Line> lines;
    double least_squares = std::numeric_limits<double>::infinity();
    for (int i = 0; i < exponents; ++i) {
        const double exponent = least_exponent * std::pow(most_exponent / least_exponent, i / (exponents - 1.0));
        lines.push_back(fit_line(points, exponent));
        least_squares = std::min(least_squares, lines.back().squares);
    }
    if (!std::isfinite(least_squares)) {
        return std::nullopt;  // the squares of huge values overflow
    }
    const double variance = least_squares / static_cast<double>(degrees);
    double lowest = smallest_loss(values);
    for (const Line& line : lines) {
        if (line.squares > least_squares + variance * f_quantile(degrees)) {
            continue;
        }
        const double x = std::pow(static_cast<double>(epoch), -line.exponent) - line.mean_x;
        const double spread = 1 + 1 / static_cast<double>(points.size()) + x * x / line.spread_x;
        lowest = std::min(lowest, line.mean + line.slope * x - t_quantile(degrees) * std::sqrt(variance * spread));
    }
    return lowest;
}

}  // namespace finch::search
