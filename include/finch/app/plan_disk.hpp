#pragma once

#include "finch/app/plan_memory.hpp"
#include "finch/cluster/layout.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"

#include <filesystem>
#include <optional>
#include <string>

/// The disk space estimates of finch plan.
namespace finch::app {

/// Upper bounds of the bytes of a run directory, without the folders of programs and without results of other runs.
struct DiskUse {
    /// The largest number of individuals, for which archive and journals are computed. Nothing: the budget does not
    /// limit it, and archive and journals are those of 1000 individuals.
    std::optional<double> individuals{};
    double archive = 0;      ///< population.h5, its predecessor, and the next one while it is written
    double journals = 0;     ///< if no archive can be written
    double snapshots = 0;    ///< of all slots of all workers, and at rungs for heirs
    double checkpoints = 0;  ///< number of copies of programs' checkpoints, at rungs for heirs, and of heirs
    double models = 0;       ///< the weights in state/, and models/best.h5 with its results
};

/// `datasets`: null if the objective is no network; snapshots and models are then 0.
[[nodiscard]] DiskUse disk_use(const config::Config& config, const cluster::Layout& layout, const Networks& networks,
                               const data::Datasets* datasets);

/// Returns the bounds as text, with a warning if the file system of `directory` has less free space. `directory` need
/// not exist.
[[nodiscard]] std::string disk_text(const config::Config& config, const DiskUse& use,
                                    const std::filesystem::path& directory);

}  // namespace finch::app
