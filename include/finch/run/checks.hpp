#pragma once

#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"

#include <optional>
#include <string>
#include <vector>

/// Checks before anything runs; evolve and plan share them.
namespace finch::run {

/// Throws ConfigError unless the configuration is a search; with `genes`, one individual of it.
void check_search(const config::Config& config, const std::optional<std::vector<std::string>>& genes);

/// Options of the data section. Only if the objective is no function.
[[nodiscard]] data::Options data_options(const config::Config& config);

/// Throws ConfigError unless the images leave some to train with, and some network of the space can exist for them.
void check_data(const config::Config& config, const data::Datasets& datasets);

/// "60000 images of 28 x 28 x 1 in 10 classes: 50000 train, 10000 validate; 10000 more test the best model".
[[nodiscard]] std::string data_text(const config::Config& config, const data::Datasets& datasets);
/// A line for each of data.systems: its images, and its share of an epoch.
[[nodiscard]] std::vector<std::string> systems_lines(const config::Config& config, const data::Datasets& datasets);
/// Warnings of labels that no training image has, and of channels that never vary.
[[nodiscard]] std::vector<std::string> data_warnings(const config::Config& config, const data::Datasets& datasets);

}  // namespace finch::run
