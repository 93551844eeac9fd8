#pragma once

#include "finch/backend/device.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"
#include "finch/search/population.hpp"
#include "finch/store/model_file.hpp"
#include "finch/store/run_directory.hpp"

#include <optional>
#include <string>

namespace finch::app {

/// World rank 0 only. Publishes models/best.h5: the weights of the best individual as the worker that trained it kept
/// them, with loss, accuracy and predictions on the test set. Returns a sentence for the log; nothing where there is
/// nobody yet or the file is up to date.
[[nodiscard]] std::optional<std::string> publish_best(const store::RunDirectory& directory,
                                                      const config::Config& config, const data::Datasets& datasets,
                                                      backend::Device& device, const search::Population& population);

}  // namespace finch::app
