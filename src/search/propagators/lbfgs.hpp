#pragma once

#include <Eigen/Dense>
#include <functional>

namespace finch::search {

/// A value to be minimised and its gradient at `x`.
using Objective = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct Box {
    Eigen::VectorXd low;
    Eigen::VectorXd high;
};

/// Minimises in a box by L-BFGS (Liu and Nocedal 1989) of 8 pairs; a coordinate at a bound that the gradient would take
/// beyond it stands still. Goes from `x`, whose first step is at most `first_step` long, and leaves there the best
/// point found, never a worse one than it began with. Returns its value.
double minimize(const Objective& objective, const Box& box, int iterations, double first_step, Eigen::VectorXd& x);

}  // namespace finch::search
