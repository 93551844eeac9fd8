#include "finch/app/meters.hpp"

#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace finch::app {
namespace {

/// What one rank has, for the others.
struct Meters {
    energy::Source source = energy::Source::unknown;
    std::string problem;
};

std::string source_text(energy::Source source, const config::Config& config) {
    switch (source) {
        case energy::Source::measured_gpu:
            return "measured by the GPUs (NVML)";
        case energy::Source::measured_cpu:
            return "measured by the CPUs (RAPL)";
        case energy::Source::estimated:
            return fmt::format("estimated with {:g} W for each rank (workers.watts)", config.workers.watts.value_or(0));
        case energy::Source::unknown:
        case energy::Source::none:
        case energy::Source::mixed:
            break;
    }
    return "not known (workers.watts: W would estimate it)";
}

/// "energy: measured by the GPUs (NVML)"; where ranks differ, how many have what; and the first reason why one does not
/// measure.
std::string summary(const std::vector<Meters>& ranks, const config::Config& config) {
    std::map<energy::Source, std::size_t> counts;
    for (const Meters& one : ranks) {
        ++counts[one.source];
    }
    std::vector<std::string> parts;
    for (const auto& [source, count] : counts) {
        parts.push_back(source_text(source, config) +
                        (counts.size() > 1 ? fmt::format(" on {} of {} ranks", count, ranks.size()) : ""));
    }
    const auto troubled =
        std::find_if(ranks.begin(), ranks.end(), [](const Meters& one) { return !one.problem.empty(); });
    return fmt::format("energy: {}{}", fmt::join(parts, ", "), troubled == ranks.end() ? "" : "; " + troubled->problem);
}

}  // namespace

std::unique_ptr<energy::Meter> open_meter(const comm::Session& session, const config::Config& config,
                                          const Placement& placement, const OpenedDevice& device) {
    if (std::holds_alternative<config::FunctionObjective>(config.objective)) {
        return nullptr;
    }
    const cluster::Place& place = placement.mine(session.world_rank());
    energy::Found found = energy::open_meter({.gpu = device.uuid,
                                              .ranks_on_gpu = device.ranks_on_it,
                                              .ranks_on_node = place.local_ranks,
                                              .watts = config.workers.watts},
                                             energy::Places::of_this_process());
    const Meters mine{found.meter ? found.meter->source() : energy::Source::unknown, found.problem};
    std::vector<Meters> all;
    for (const std::string& packed : comm::gather_all(MPI_COMM_WORLD, to_message(mine))) {
        all.push_back(from_message<Meters>(packed));
    }
    if (session.world_rank() == 0) {
        spdlog::info("{}", summary(all, config));
    }
    return std::move(found.meter);
}

}  // namespace finch::app
