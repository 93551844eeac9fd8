#pragma once

#include "finch/backend/device.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"
#include "finch/search/population.hpp"
#include "finch/store/run_directory.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace finch::run {

/// World rank 0 only. Makes models/best.h5 the weights of `best`, an individual of the run `run` or null, as the worker
/// that trained it kept them, without results: some milliseconds, so that it can follow every archive. False if they
/// are not there, and what was published stands. Throws StorageError.
bool publish_weights(const store::RunDirectory& directory, std::uint64_t run, const search::Individual* best);

/// World rank 0 only. The same from the file of whichever worker trained it, and then its results on the test and the
/// validation set (set_results()). Returns a sentence for the log; nothing if there is no individual yet or the file is
/// up to date. Throws StorageError, std::bad_alloc, what a device's library throws, and FileError if the weights are in
/// no file of this run.
[[nodiscard]] std::optional<std::string> publish_best(const store::RunDirectory& directory, std::uint64_t run,
                                                      const config::Config& config, const data::Datasets& datasets,
                                                      backend::Device& device, const search::Individual* best);

/// World rank 0 only. The same at the end of a start, whose results are all there: it logs the sentence, and any
/// failure as a warning. False if something is missing in models/best.h5.
[[nodiscard]] bool publish_or_warn(const store::RunDirectory& directory, std::uint64_t run,
                                   const config::Config& config, const data::Datasets& datasets,
                                   backend::Device& device, const search::Individual* best);

/// World rank 0 only. Removes the weights of all repeats but the best of each individual, which alone may be published.
void remove_spare_weights(const store::RunDirectory& directory, const search::Population& population);

/// World rank 0 only. Removes snapshots of individuals that are finished: a kill came between the record and the
/// removal, or the file system refused it.
void remove_finished_trainings(const store::RunDirectory& directory, const search::Population& population);

}  // namespace finch::run
