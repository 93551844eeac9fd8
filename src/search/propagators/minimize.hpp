#pragma once

#include <Eigen/Dense>
#include <functional>

namespace finch::search {

/// A function to be minimised, which returns its value at `x` and stores its gradient in `gradient`.
using Objective = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct Box {
    Eigen::VectorXd low;
    Eigen::VectorXd high;
};

/// Minimises `objective` in `box` by the L-BFGS of NLopt, starting at `x`. Stores the best point in `x`, which is never
/// worse than the start. Returns the value of `objective` at this point.
double minimize(const Objective& objective, const Box& box, int most_evaluations, Eigen::VectorXd& x);

}  // namespace finch::search
