#pragma once

#include "minimize.hpp"
#include "model_results.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace finch::search {

/// A lower bound on the loss, in the coordinates of a model: one row for each number and choice.
struct Slope {
    Objective bound;  ///< its gradient is 0 in choices
    Box box;
    std::vector<std::pair<Eigen::Index, const Gene*>> choices;            ///< rows that may change
    std::function<Eigen::VectorXd(const Eigen::VectorXd& point)> inside;  ///< moved there, into the unit cube
    std::function<Genome(const Eigen::VectorXd& point, Eigen::Index start)> genome_at;
};

struct Summit {
    Genome genome;
    Eigen::Index start;
};

/// Climbs from the columns of `starts` that have the least of `bounds`, all of which are allowed: numbers by gradients,
/// then each choice to its best option, in turns; from what breaks a constraint halfway back to the start, until it
/// holds. Returns the least that is unknown; nothing if there is none.
[[nodiscard]] std::optional<Summit> climb(const Slope& slope, const Eigen::MatrixXd& starts,
                                          const Eigen::VectorXd& bounds, const Allowed& allowed);

}  // namespace finch::search
