#pragma once

#include "finch/report/competition.hpp"
#include "finch/store/resume.hpp"

#include <string>

namespace finch::report {

/// A text as a cell of RFC 4180: in quotes if it holds what would end it.
[[nodiscard]] std::string csv_cell(const std::string& text);

/// Every individual as comma-separated values (RFC 4180) with a line of names first: id, the genes, then the columns of
/// /individuals, `loss.measure`: what the loss is, and `islands`: those on which it is active now by `competition`,
/// with spaces between, as the tables of the best have it; last, metric.NAME for each metric, at the individual's best
/// epoch. Ids read restart.worker.sequence; numbers read back to the same bits; what was not measured is "nan".
[[nodiscard]] std::string csv(const store::Recovered& recovered, const Competition& competition);

}  // namespace finch::report
