#pragma once

#include "simulate/simulation.hpp"

#include <span>
#include <string>

/// What bench_simulate prints and writes, as whole lines.
namespace finch::simulate {

/// What is simulated, and the names of the columns.
[[nodiscard]] std::string heading(const config::Config& config, const Options& options);
/// One run.
[[nodiscard]] std::string row(const config::Config& config, const Result& result);
/// Medians and quartiles of all runs, in the same columns.
[[nodiscard]] std::string summary(const config::Config& config, std::span<const Result> results);

[[nodiscard]] std::string csv_heading();
/// Losses with all their digits.
[[nodiscard]] std::string csv_row(const config::Config& config, const Options& options, const Result& result);

/// The value below which the share `share` of the sorted `values` lies, linear between two of them (Hyndman and Fan
/// 1996, type 7). NaN if there are none.
[[nodiscard]] double quantile(std::vector<double> values, double share);

}  // namespace finch::simulate
