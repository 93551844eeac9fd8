#include "acquisition.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace finch::search {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr std::size_t most_starts = 3;
constexpr int bound_evaluations = 25;  ///< evaluations of the bound per round
constexpr int rounds = 2;
constexpr int most_halvings = 20;
constexpr double least_gain = 1e-9;

/// Sets each choice to the allowed option with the smallest bound. Returns whether a choice has changed.
bool improve_choices(const Acquisition& acquisition, const Allowed& allowed, Index start, VectorXd& point,
                     double& bound) {
    VectorXd gradient;
    bool is_changed = false;
    for (const auto& [row, gene] : acquisition.choices) {
        for (std::uint64_t option = 0; option < *value_count(*gene); ++option) {
            VectorXd other = point;
            other[row] = to_unit(*gene, static_cast<double>(option));
            const double value = acquisition.bound(other, gradient);
            if (value < bound - least_gain && allowed.accepts(acquisition.genome_at(other, start))) {
                bound = value;
                point = other;
                is_changed = true;
            }
        }
    }
    return is_changed;
}

/// Minimises the bound from one start. Returns the genome at the end of the descent.
Genome descend(const Acquisition& acquisition, const Allowed& allowed, Index column, const VectorXd& start) {
    VectorXd point = start;
    bool is_changed = true;
    for (int round = 0; round < rounds && is_changed; ++round) {
        const VectorXd from = point;
        double bound = minimize(acquisition.bound, acquisition.box, bound_evaluations, point);
        point = acquisition.inside(point);
        for (int halving = 0; halving < most_halvings && !allowed.holds(acquisition.genome_at(point, column));
             ++halving) {
            VectorXd gradient;
            point = 0.5 * (from + point);
            bound = acquisition.bound(point, gradient);
        }
        is_changed = improve_choices(acquisition, allowed, column, point, bound);
    }
    return acquisition.genome_at(point, column);
}

}  // namespace

std::optional<Optimum> optimize(const Acquisition& acquisition, const Eigen::MatrixXd& starts, const VectorXd& bounds,
                                const Allowed& allowed) {
    std::vector<Index> order(static_cast<std::size_t>(bounds.size()));
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return bounds[a] < bounds[b]; });
    order.resize(std::min(most_starts, order.size()));
    std::optional<Optimum> found;
    for (const Index column : order) {
        const VectorXd start = starts.col(column);
        // Integer genes are rounded, so the genome of the start may be better than the genome at the end of the
        // descent.
        std::array ends{descend(acquisition, allowed, column, start), acquisition.genome_at(start, column)};
        for (Genome& genome : ends) {
            VectorXd gradient;
            const double bound = acquisition.bound(acquisition.point_of(genome), gradient);
            if ((!found || bound < found->bound) && allowed.accepts(genome)) {
                found = {std::move(genome), bound, column};
            }
        }
    }
    return found;
}

}  // namespace finch::search
