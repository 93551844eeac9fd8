#pragma once

#include "finch/report/summary.hpp"

#include "gene_effects.hpp"

#include <span>
#include <string>
#include <vector>

namespace finch::report {

/// What a summary found that decides how to go on.
struct Advice {
    bool has_result = false;
    bool wants_evaluations = false;  ///< the search still improves, or had few evaluations
    bool wants_epochs = false;       ///< the best networks were best in their last epoch
    std::span<const GeneEffect> effects{};
};

/// True if finch train made the run: one individual with given genes, and no search.
[[nodiscard]] bool is_single_training(const SummaryInput& input);

/// Lines "purpose: command", the most useful first. A command that the configuration would not accept is left out.
[[nodiscard]] std::vector<std::string> next_steps(const SummaryInput& input, const Advice& advice);

}  // namespace finch::report
