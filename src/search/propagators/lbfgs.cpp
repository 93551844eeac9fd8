#include "lbfgs.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <vector>

namespace finch::search {
namespace {

using Eigen::VectorXd;

constexpr std::size_t most_pairs = 8;
constexpr int most_shortenings = 10;
constexpr double shorter = 0.4;          ///< of a step that was too long
constexpr double enough_descent = 1e-4;  ///< of what the gradient promises (Armijo)
constexpr double least_gain = 1e-7;      ///< of the value, for another iteration

/// What the last steps tell of the curvature.
class Curvature {
public:
    void add(const VectorXd& step, const VectorXd& change) {
        const double product = step.dot(change);
        if (product > 1e-12 * step.norm() * change.norm()) {
            pairs_.push_back({step, change, 1 / product});
            if (pairs_.size() > most_pairs) {
                pairs_.pop_front();
            }
        }
    }
    void forget() { pairs_.clear(); }

    /// The inverse Hessian times `gradient`, by the two loops.
    [[nodiscard]] VectorXd applied(VectorXd gradient, double first_step) const {
        if (pairs_.empty()) {
            return gradient * std::min(first_step, first_step / gradient.norm());
        }
        std::vector<double> shares(pairs_.size());
        for (std::size_t i = pairs_.size(); i-- > 0;) {
            shares[i] = pairs_[i].scale * pairs_[i].step.dot(gradient);
            gradient -= shares[i] * pairs_[i].change;
        }
        const Pair& newest = pairs_.back();
        gradient *= newest.step.dot(newest.change) / newest.change.squaredNorm();
        for (std::size_t i = 0; i < pairs_.size(); ++i) {
            gradient += pairs_[i].step * (shares[i] - pairs_[i].scale * pairs_[i].change.dot(gradient));
        }
        return gradient;
    }

private:
    struct Pair {
        VectorXd step;
        VectorXd change;   ///< of the gradient
        double scale = 0;  ///< 1 / (step · change)
    };
    std::deque<Pair> pairs_;
};

}  // namespace

double minimize(const Objective& objective, const Box& box, int iterations, double first_step, VectorXd& x) {
    const auto inside = [&box](const VectorXd& point) -> VectorXd {
        return point.cwiseMax(box.low).cwiseMin(box.high);
    };
    Curvature curvature;
    VectorXd gradient(x.size());
    VectorXd next_gradient(x.size());
    x = inside(x);
    double value = objective(x, gradient);
    for (int iteration = 0; iteration < iterations; ++iteration) {
        const auto stands = (x.array() <= box.low.array() && gradient.array() > 0) ||
                            (x.array() >= box.high.array() && gradient.array() < 0);
        const VectorXd mask = 1 - stands.cast<double>();
        const VectorXd slope = gradient.cwiseProduct(mask);
        if (!(slope.norm() > 1e-7)) {
            break;
        }
        VectorXd direction = -curvature.applied(slope, first_step).cwiseProduct(mask);
        if (!(direction.dot(gradient) < 0)) {
            curvature.forget();
            direction = -curvature.applied(slope, first_step);
        }
        VectorXd next;
        double next_value = value;
        bool is_better = false;
        double length = 1;
        for (int halving = 0; halving < most_shortenings && !is_better; ++halving, length *= shorter) {
            next = inside(x + length * direction);
            next_value = objective(next, next_gradient);
            is_better = next_value <= value + enough_descent * gradient.dot(next - x);
        }
        if (!is_better) {
            break;
        }
        curvature.add(next - x, next_gradient - gradient);
        const double gain = value - next_value;
        x = next;
        gradient = next_gradient;
        value = next_value;
        if (gain < least_gain * (1 + std::abs(value))) {
            break;
        }
    }
    return value;
}

}  // namespace finch::search
