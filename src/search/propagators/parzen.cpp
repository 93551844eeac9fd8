#include "parzen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace finch::search {
namespace {

constexpr double least_deviation = 0.01;

/// Returns the probability of a standard normal between `low` and `high`.
double normal_between(double low, double high) {
    if (low > 0) {
        return normal_between(-high, -low);  // erfc is only exact in its tail
    }
    return 0.5 * (std::erfc(-high / std::numbers::sqrt2) - std::erfc(-low / std::numbers::sqrt2));
}

double log_normal_density(double x, double deviation) {
    const double z = x / deviation;
    return -0.5 * z * z - std::log(deviation * std::sqrt(2 * std::numbers::pi));
}

/// Returns, for each centre, the larger of the distances to its two neighbours. An outermost centre has only one
/// neighbour.
std::vector<double> widths(const std::vector<double>& centres) {
    const std::size_t count = centres.size();
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return centres[a] < centres[b]; });
    std::vector<double> found(count, 1);
    for (std::size_t place = 0; count > 1 && place < count; ++place) {
        const double below = place > 0 ? centres[order[place]] - centres[order[place - 1]] : 0;
        const double above = place + 1 < count ? centres[order[place + 1]] - centres[order[place]] : 0;
        found[order[place]] = std::max(below, above);
    }
    return found;
}

}  // namespace

ParzenEstimator::ParzenEstimator(const Space& space, const std::vector<std::size_t>& genes,
                                 const std::vector<const UnitGenome*>& points)
    : points_(points.size()) {
    const auto count = static_cast<double>(points.size());
    const double least = std::max(least_deviation, 1 / (count + 2));
    for (const std::size_t gene : genes) {
        Axis axis{.gene = &space.genes[gene], .coordinate = gene};
        std::vector<double> centres;
        for (const UnitGenome* point : points) {
            centres.push_back((*point)[gene]);
        }
        const std::vector<double> deviations = widths(centres);
        for (std::size_t i = 0; i < points.size(); ++i) {
            const double deviation = std::clamp(deviations[i], least, 1.0);
            const double inside = normal_between(-centres[i] / deviation, (1 - centres[i]) / deviation);
            axis.kernels.push_back({centres[i], deviation, std::log(inside)});
        }
        if (is_choice(space.genes[gene])) {
            const auto options = static_cast<double>(*value_count(space.genes[gene]));
            axis.shared = options / (count + 1 + options);
            axis.other = axis.shared / options;
            axis.same = 1 - axis.shared + axis.other;
        }
        axes_.push_back(std::move(axis));
    }
}

void ParzenEstimator::draw(UnitGenome& point, RandomStream& random) const {
    const auto chosen = static_cast<std::size_t>(random.below(points_ + 1));
    for (const Axis& axis : axes_) {
        const double u = chosen == points_ ? random.uniform() : draw_from(axis, axis.kernels[chosen], random);
        point[axis.coordinate] = to_unit(*axis.gene, from_unit(*axis.gene, u));
    }
}

double ParzenEstimator::draw_from(const Axis& axis, const Kernel& kernel, RandomStream& random) {
    if (is_choice(*axis.gene)) {
        const bool is_same = random.uniform() >= axis.shared;
        return is_same ? kernel.centre : random.uniform();
    }
    double u = -1;
    while (!(0 <= u && u <= 1)) {  // at worst, one draw in three is accepted
        u = kernel.centre + kernel.deviation * random.normal();
    }
    return u;
}

void ParzenEstimator::add_logarithms(const Axis& axis, double u, std::vector<double>& sums) {
    const std::size_t uniform = axis.kernels.size();
    if (is_choice(*axis.gene)) {
        const double same = std::log(axis.same);
        const double other = std::log(axis.other);
        for (std::size_t i = 0; i < uniform; ++i) {
            sums[i] += axis.kernels[i].centre == u ? same : other;
        }
        sums[uniform] -= std::log(static_cast<double>(*value_count(*axis.gene)));
        return;
    }
    constexpr double narrow = 0.05;  // in deviations: within a narrower cell the density is almost constant
    const UnitCell cell = unit_cell(*axis.gene, from_unit(*axis.gene, u));
    const double width = cell.high - cell.low;
    const double middle = (cell.low + cell.high) / 2;
    const double log_width = width > 0 ? std::log(width) : 0;
    for (std::size_t i = 0; i < uniform; ++i) {
        const Kernel& kernel = axis.kernels[i];
        const double inside = width < narrow * kernel.deviation
                                  ? log_normal_density(middle - kernel.centre, kernel.deviation) + log_width
                                  : std::log(normal_between((cell.low - kernel.centre) / kernel.deviation,
                                                            (cell.high - kernel.centre) / kernel.deviation));
        sums[i] += inside - kernel.log_inside;
    }
    sums[uniform] += log_width;
}

double ParzenEstimator::log_density(const UnitGenome& point) const {
    std::vector<double> sums(points_ + 1);
    for (const Axis& axis : axes_) {
        add_logarithms(axis, point[axis.coordinate], sums);
    }
    const double largest = *std::max_element(sums.begin(), sums.end());
    double sum = 0;
    for (const double logarithm : sums) {
        sum += std::exp(logarithm - largest);
    }
    return largest + std::log(sum / static_cast<double>(points_ + 1));
}

}  // namespace finch::search
