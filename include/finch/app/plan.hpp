#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace finch::app {

struct PlanOptions {
    std::filesystem::path config;
    std::vector<std::string> settings;
    std::optional<int> nodes;  ///< nothing: the allocation that this runs in
    std::optional<int> ranks_per_node;
    int gpus_per_node = 0;
};
/// Who would run where, on which networks and how much memory. Needs no MPI; returns the exit code.
[[nodiscard]] int plan(const PlanOptions& options);

}  // namespace finch::app
