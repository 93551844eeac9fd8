#pragma once

#include "simulate/simulation.hpp"

#include <span>
#include <string>

/// The lines that bench_simulate prints, and the lines that it writes to the CSV file.
namespace finch::simulate {

/// Returns a description of the simulation, and a line with the names of the columns.
[[nodiscard]] std::string heading(const config::Config& config, const Options& options);
/// Returns the line of one run.
[[nodiscard]] std::string row(const Result& result);
/// Returns the lines with the quartiles and medians of all runs, in the same columns.
[[nodiscard]] std::string summary(std::span<const Result> results);

[[nodiscard]] std::string csv_heading();
/// Returns the CSV line of one run. Numbers have all their digits.
[[nodiscard]] std::string csv_row(const config::Config& config, const Options& options, const Result& result);

/// Returns the quantile `share` of `values`, with linear interpolation between two values (Hyndman and Fan 1996, type
/// 7). Ignores NaN. Returns NaN if there are no values.
[[nodiscard]] double quantile(std::vector<double> values, double share);

}  // namespace finch::simulate
