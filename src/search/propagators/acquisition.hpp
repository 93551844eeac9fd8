#pragma once

#include "minimize.hpp"
#include "model_results.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace finch::search {

/// The lower confidence bound μ − κσ of a model, as a function of a point. A point has one row per numeric gene and one
/// row per choice.
struct Acquisition {
    Objective bound;  ///< its gradient is 0 for choices
    Box box;
    std::vector<std::pair<Eigen::Index, const Gene*>> choices;            ///< rows of choices that may change
    std::function<Eigen::VectorXd(const Eigen::VectorXd& point)> inside;  ///< moves a point into the unit cube
    /// genome_at() returns the genome of `point`, and point_of() the point of a genome. `start`: the column of the
    /// start matrix from which the descent to `point` began.
    std::function<Genome(const Eigen::VectorXd& point, Eigen::Index start)> genome_at;
    std::function<Eigen::VectorXd(const Genome& genome)> point_of;
};

struct Optimum {
    Genome genome;
    double bound;
    Eigen::Index start;  ///< column where the search began
};

/// Minimises the lower confidence bound from the three best columns of `starts`. `bounds`: the bound at each column.
/// The descent has two rounds. Each round first moves the numeric genes along gradients, then sets each choice to its
/// best option. If the new point violates a constraint, the step of the numeric genes is halved up to 20 times. Returns
/// the allowed genome with the smallest bound (after rounding its values), or nothing if no genome is allowed.
[[nodiscard]] std::optional<Optimum> optimize(const Acquisition& acquisition, const Eigen::MatrixXd& starts,
                                              const Eigen::VectorXd& bounds, const Allowed& allowed);

}  // namespace finch::search
