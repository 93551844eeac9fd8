#pragma once

#include "minimize.hpp"
#include "model_results.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace finch::search {

/// The lower confidence bound μ − κσ of a model as a function of its coordinates: one row for each number and choice.
struct Acquisition {
    Objective bound;  ///< its gradient is 0 in choices
    Box box;
    std::vector<std::pair<Eigen::Index, const Gene*>> choices;            ///< rows that may change
    std::function<Eigen::VectorXd(const Eigen::VectorXd& point)> inside;  ///< moved into the unit cube
    /// A genome at `point`, which began at the column `start`; and the point that a genome stands for.
    std::function<Genome(const Eigen::VectorXd& point, Eigen::Index start)> genome_at;
    std::function<Eigen::VectorXd(const Genome& genome)> point_of;
};

struct Optimum {
    Genome genome;
    double bound;
    Eigen::Index start;  ///< column
};

/// Minimises the bound from the three best columns of `starts`, at which it is `bounds`: numbers by gradients, then
/// each choice to its best option, in two rounds. Where the result breaks a constraint, the way to its numbers is
/// halved up to 20 times. Returns the best genome that is allowed, judged at the values that it has; nothing if there
/// is none.
[[nodiscard]] std::optional<Optimum> optimize(const Acquisition& acquisition, const Eigen::MatrixXd& starts,
                                              const Eigen::VectorXd& bounds, const Allowed& allowed);

}  // namespace finch::search
