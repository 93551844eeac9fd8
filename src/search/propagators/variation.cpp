#include "variation.hpp"

#include <algorithm>
#include <cmath>

namespace finch::search {

double normal_in_unit(double centre, double deviation, RandomStream& random) {
    double u = -1;
    while (!(0 <= u && u <= 1)) {
        u = centre + deviation * random.normal();
    }
    return u;
}

double simulated_binary(double near, double far, double eta, RandomStream& random) {
    const double distance = std::abs(near - far);
    if (!(distance > 0)) {
        return near;
    }
    const double middle = (near + far) / 2;
    const double room = near < far ? middle : 1 - middle;
    const double most = std::max(1.0, 2 * room / distance);
    // P(β ≤ b) is b^(η+1) / 2 up to 1, 1 − b^−(η+1) / 2 beyond.
    const double power = 1 / (eta + 1);
    const double share = random.uniform() * (1 - 0.5 * std::pow(most, -(eta + 1)));
    const double spread = share < 0.5 ? std::pow(2 * share, power) : std::pow(2 * (1 - share), -power);
    const double child = middle + (near < far ? -0.5 : 0.5) * spread * distance;
    return std::clamp(child, 0.0, 1.0);  // rounding
}

double blend(double first, double second, double alpha, RandomStream& random) {
    const auto [low, high] = std::minmax(first, second);
    const double beyond = alpha * (high - low);
    return random.uniform(std::max(0.0, low - beyond), std::min(1.0, high + beyond));
}

double polynomial(double centre, double eta, RandomStream& random) {
    // The integral of the density from 0 to |δ| is (1 − (1 − |δ|)^(η+1)) / 2.
    const double below = 0.5 * (1 - std::pow(1 - centre, eta + 1));
    const double above = 0.5 * (1 - std::pow(centre, eta + 1));
    const double place = random.uniform() * (below + above);
    const bool is_below = place < below;
    const double change = 1 - std::pow(1 - 2 * (is_below ? place : place - below), 1 / (eta + 1));
    return std::clamp(is_below ? centre - change : centre + change, 0.0, 1.0);  // rounding
}

double changed_value(const Gene& gene, double value, double u) {
    const double moved = from_unit(gene, u);
    if (moved != value || !value_count(gene)) {
        return moved;
    }
    const UnitCell cell = unit_cell(gene, value);
    const double little = 0.001 * (cell.high - cell.low);
    const bool has_above = cell.high + little < 1;
    const bool has_below = cell.low - little > 0;
    const bool is_up = has_above && (u > to_unit(gene, value) || !has_below);
    return from_unit(gene, is_up ? cell.high + little : cell.low - little);
}

double other_option(const Gene& gene, double value, RandomStream& random) {
    const auto other = static_cast<double>(random.below(*value_count(gene) - 1));
    return other >= value ? other + 1 : other;
}

}  // namespace finch::search
