#pragma once

#include "finch/report/competition.hpp"
#include "finch/search/gene.hpp"
#include "finch/store/resume.hpp"

#include <span>
#include <string>

namespace finch::report {

/// A run among those that are compared.
struct Compared {
    std::string name;
    const store::Recovered& recovered;
    const search::Space& space;
    Competition competition = {};
};

/// What came of each run, side by side: state, evaluations, outcomes, epochs, hours, node-hours and energy, the best
/// loss, its individual and genes, and how many evaluations and hours it took to be as good as the worst of their
/// bests, if all minimise the same. At least one run.
[[nodiscard]] std::string comparison_table(std::span<const Compared> runs);

}  // namespace finch::report
