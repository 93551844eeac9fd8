#pragma once

#include "finch/app/plan_memory.hpp"
#include "finch/cluster/layout.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"

#include <filesystem>
#include <string>

/// The disk space estimate of finch plan.
namespace finch::app {

/// Returns an upper bound of the bytes of a run directory, without the folders of programs and without results of other
/// runs. If the budget does not limit the individuals, it is the bound for 1000. `datasets`: null if the objective is
/// no network.
[[nodiscard]] double disk_bytes(const config::Config& config, const cluster::Layout& layout, const Networks& networks,
                                const data::Datasets* datasets);

/// Returns the bound as text, with a warning if the file system of `directory` has less free space. `directory` need
/// not exist.
[[nodiscard]] std::string disk_text(const config::Config& config, double bytes, const std::filesystem::path& directory);

}  // namespace finch::app
