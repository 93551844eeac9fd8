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

/// Minimises in a box from `x` on, by the L-BFGS of NLopt, and leaves there the best point found, never a worse one
/// than it began with. Returns its value.
double minimize(const Objective& objective, const Box& box, int most_evaluations, Eigen::VectorXd& x);

}  // namespace finch::search
