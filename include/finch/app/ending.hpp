#pragma once

#include "finch/backend/device.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"
#include "finch/search/population.hpp"
#include "finch/store/model_file.hpp"
#include "finch/store/run_directory.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace finch::app {

/// World rank 0 only. Publishes models/best.h5: the weights of the best individual as the worker that trained it kept
/// them, with loss, accuracy and predictions on the test set. Returns a sentence for the log; nothing where there is
/// nobody yet or the file is up to date. Throws StorageError, and FileError where the weights are in no file of this
/// `run`.
[[nodiscard]] std::optional<std::string> publish_best(const store::RunDirectory& directory, std::uint64_t run,
                                                      const config::Config& config, const data::Datasets& datasets,
                                                      backend::Device& device, const search::Population& population);

}  // namespace finch::app
