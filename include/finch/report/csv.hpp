#pragma once

#include "finch/report/competition.hpp"
#include "finch/store/resume.hpp"

#include <string>

namespace finch::report {

/// Returns a text as a CSV cell (RFC 4180): in quotes if it contains a comma, a quote or a line break.
[[nodiscard]] std::string csv_cell(const std::string& text);

/// Returns every individual as comma-separated values (RFC 4180), after a line of column names. Ids have the form
/// restart.worker.sequence. Numbers have enough digits to be read back to the same bits. Values that were not measured
/// are "nan". The columns:
/// - id, the genes, then the columns of /individuals
/// - `loss.measure`: the meaning of the loss
/// - `islands`: the islands on which the individual is active now by `competition`, separated by spaces
/// - metric.NAME for each metric, at the individual's best epoch
[[nodiscard]] std::string csv(const store::Recovered& recovered, const Competition& competition);

}  // namespace finch::report
