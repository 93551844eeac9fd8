#include "finch/run/meters.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace finch::run {
namespace {

/// "measured by the GPUs (NVML)"; where ranks differ, how many have what.
std::string names_text(const std::vector<std::string>& names) {
    std::map<std::string, std::size_t> counts;
    for (const std::string& name : names) {
        ++counts[name.empty() ? "not known (workers.watts: W would estimate it)" : name];
    }
    std::vector<std::string> parts;
    for (const auto& [name, count] : counts) {
        parts.push_back(name + (counts.size() > 1 ? fmt::format(" on {} of {} ranks", count, names.size()) : ""));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::unique_ptr<energy::Meter> open_meter(const comm::Session& session, const config::Config& config,
                                          const Placement& placement, const OpenedDevice& device) {
    if (std::holds_alternative<config::FunctionObjective>(config.objective)) {
        return nullptr;
    }
    energy::Found found = energy::open_meter({.gpu = device.uuid,
                                              .ranks_on_gpu = device.ranks_on_it,
                                              .ranks_on_node = placement.mine(session.world_rank()).local_ranks,
                                              .watts = config.workers.watts});
    const auto names = comm::gather_all(MPI_COMM_WORLD, found.name);
    const auto problems = comm::gather_all(MPI_COMM_WORLD, found.problem);
    const auto problem = std::find_if(problems.begin(), problems.end(), [](const auto& text) { return !text.empty(); });
    const std::string text = names_text(names) + (problem == problems.end() ? "" : "; " + *problem);
    const bool is_objective = std::count(config.costs.begin(), config.costs.end(), search::Cost::joules) > 0;
    if (is_objective && std::count(names.begin(), names.end(), std::string()) > 0) {
        throw ConfigError("search.objective: joules are " + text);
    }
    if (session.world_rank() == 0) {
        spdlog::info("energy: {}", text);
    }
    return std::move(found.meter);
}

}  // namespace finch::run
