#include "climb.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace finch::search {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr std::size_t climbs = 3;
constexpr int climb_evaluations = 25;
constexpr int rounds = 2;
constexpr int most_halvings = 20;  ///< of the way to what breaks a constraint
constexpr double least_gain = 1e-9;

/// Whether a choice has changed.
bool improve_choices(const Slope& slope, const Allowed& allowed, Index start, VectorXd& point, double& bound) {
    VectorXd gradient;
    bool is_changed = false;
    for (const auto& [row, gene] : slope.choices) {
        for (std::uint64_t option = 0; option < *value_count(*gene); ++option) {
            VectorXd other = point;
            other[row] = to_unit(*gene, static_cast<double>(option));
            const double value = slope.bound(other, gradient);
            if (value < bound - least_gain && allowed.is_unknown(slope.genome_at(other, start))) {
                bound = value;
                point = other;
                is_changed = true;
            }
        }
    }
    return is_changed;
}

VectorXd halfway(const Slope& slope, const VectorXd& start, const VectorXd& point) {
    VectorXd middle = 0.5 * (start + point);
    for (const auto& choice : slope.choices) {
        middle[choice.first] = point[choice.first];
    }
    return middle;
}

}  // namespace

std::optional<Summit> climb(const Slope& slope, const Eigen::MatrixXd& starts, const VectorXd& bounds,
                            const Allowed& allowed) {
    std::vector<Index> order(static_cast<std::size_t>(bounds.size()));
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return bounds[a] < bounds[b]; });
    order.resize(std::min(climbs, order.size()));
    std::optional<Summit> found;
    double least = std::numeric_limits<double>::infinity();
    for (const Index column : order) {
        const VectorXd start = starts.col(column);
        VectorXd point = start;
        double bound = 0;
        bool is_changed = true;
        for (int round = 0; round < rounds && is_changed; ++round) {
            bound = minimize(slope.bound, slope.box, climb_evaluations, point);
            point = slope.inside(point);
            is_changed = improve_choices(slope, allowed, column, point, bound);
        }
        Genome genome = slope.genome_at(point, column);
        for (int halving = 0; halving < most_halvings && !allowed.holds(genome); ++halving) {
            point = halfway(slope, start, point);
            VectorXd gradient;
            bound = slope.bound(point, gradient);
            genome = slope.genome_at(point, column);
        }
        if (bound < least && allowed.is_unknown(genome) && allowed.holds(genome)) {
            least = bound;
            found = {std::move(genome), column};
        }
    }
    return found;
}

}  // namespace finch::search
