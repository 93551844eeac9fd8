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

/// World rank 0 only. True if models/best.h5 holds the weights of `best`, an individual of the run `run`.
[[nodiscard]] bool is_published(const store::RunDirectory& directory, std::uint64_t run,
                                const search::Individual& best);

/// World rank 0 only. Writes the weights of `best`, an individual of the run `run` or null, to models/best.h5, without
/// results. Reads the weights from the file of the worker that trained `best`. This takes some milliseconds, so it is
/// possible after every write of the archive. Returns false and leaves models/best.h5 unchanged if the weights are not
/// found. Throws StorageError.
bool publish_weights(const store::RunDirectory& directory, std::uint64_t run, const search::Individual* best);

/// World rank 0 only. Does the same as publish_weights(), but searches the files of all workers, and adds the results
/// on the test and the validation set (set_results()). Returns a sentence for the log; nothing if `best` is null or the
/// file is up to date. Throws StorageError, std::bad_alloc, exceptions of a device's library, and FileError if no file
/// of this run contains the weights.
[[nodiscard]] std::optional<std::string> publish_best(const store::RunDirectory& directory, std::uint64_t run,
                                                      const config::Config& config, const data::Datasets& datasets,
                                                      backend::Device& device, const search::Individual* best);

/// World rank 0 only. Calls publish_best() at the end of a start and logs its sentence, or any failure as a warning.
/// Requires that all results of the start are present. Returns false if models/best.h5 is incomplete.
[[nodiscard]] bool publish_or_warn(const store::RunDirectory& directory, std::uint64_t run,
                                   const config::Config& config, const data::Datasets& datasets,
                                   backend::Device& device, const search::Individual* best);

/// World rank 0 only. Removes the weights of all repeats, except the best repeat of each individual: only this repeat
/// may be published.
void remove_spare_weights(const store::RunDirectory& directory, const search::Population& population);

/// World rank 0 only. Removes snapshots of finished individuals. A snapshot remains if a process was killed between
/// recording the result and removing the snapshot, or if the file system refused the removal.
void remove_finished_trainings(const store::RunDirectory& directory, const search::Population& population);

}  // namespace finch::run
