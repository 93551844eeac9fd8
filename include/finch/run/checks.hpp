#pragma once

#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"

#include <optional>
#include <string>
#include <vector>

/// Checks at the beginning of evolve and plan.
namespace finch::run {

/// Throws ConfigError if the configuration describes no search, or if `genes` describe no individual of the search
/// space.
void check_search(const config::Config& config, const std::optional<std::vector<std::string>>& genes);

/// Returns the key that needs the joules of each individual: "search.objective" or "search.limits"; empty if none does.
[[nodiscard]] std::string key_of_joules(const config::Config& config);

/// Returns the options of the data section. Requires that the objective trains networks.
[[nodiscard]] data::Options data_options(const config::Config& config);

/// Throws ConfigError if no images are left for training, or if no network of the search space can exist for the
/// images.
void check_data(const config::Config& config, const data::Datasets& datasets);

/// Returns a text about the data: "60000 images of 28 x 28 x 1 in 10 classes: 50000 train, 10000 validate; 10000 more
/// test the best model".
[[nodiscard]] std::string data_text(const config::Config& config, const data::Datasets& datasets);
/// Returns a line for each of data.systems: the number of its images, and its share of an epoch.
[[nodiscard]] std::vector<std::string> systems_lines(const config::Config& config, const data::Datasets& datasets);
/// Returns warnings about labels without training images, channels with constant pixels, and unused validation images.
[[nodiscard]] std::vector<std::string> data_warnings(const config::Config& config, const data::Datasets& datasets);

}  // namespace finch::run
