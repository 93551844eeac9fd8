#include "finch/run/devices.hpp"

#include "finch/backend/cuda.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/cluster/machine.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/config/trial_genomes.hpp"
#include "finch/run/on_every_rank.hpp"
#include "finch/train/training.hpp"

#include <utility>
#include <vector>

namespace finch::run {
namespace {

cluster::SeenDevices seen_devices(const std::vector<backend::DeviceDescription>& devices) {
    cluster::SeenDevices seen;
    for (const backend::DeviceDescription& device : devices) {
        seen.uuids.push_back(device.uuid);
    }
    seen.problem = devices.empty() ? backend::cuda_problem() : "";
    seen.has_nccl = comm::has_nccl();
    seen.nccl_host_id = cluster::Environment::of_this_process().text("NCCL_HOSTID").value_or("");
    return seen;
}

cluster::DeviceMap map_everywhere(const config::Config& config, const Placement& placement,
                                  const std::vector<backend::DeviceDescription>& mine) {
    std::vector<cluster::SeenDevices> seen;
    for (const std::string& packed : comm::gather_all(MPI_COMM_WORLD, to_message(seen_devices(mine)))) {
        seen.push_back(from_message<cluster::SeenDevices>(packed));
    }
    return cluster::map_devices(placement.layout.places, seen, device_wishes(config));
}

/// Returns a function that computes the node memory that this rank may still use. In tests FINCH_TEST_MEMORY_LIMIT, in
/// bytes, replaces the limit of this process's control groups.
std::function<std::int64_t()> free_memory(int ranks_on_node) {
    cluster::Machine machine = cluster::this_machine();
    machine.memory_limit_bytes =
        cluster::Environment::of_this_process().number("FINCH_TEST_MEMORY_LIMIT").value_or(machine.memory_limit_bytes);
    return [machine = std::move(machine), ranks_on_node] {
        return cluster::memory_left(machine, cluster::held_memory(), ranks_on_node);
    };
}

}  // namespace

cluster::DeviceWishes device_wishes(const config::Config& config) {
    const config::Workers& workers = config.workers;
    return {.device = workers.device,
            .communicator = workers.communicator,
            .share_device = workers.share_device,
            .slots = workers.slots,
            .ranks_per_worker = workers.ranks};
}

std::unique_ptr<backend::Device> make_device(cluster::DeviceKind kind, int index, int threads,
                                             std::function<std::int64_t()> free_memory, int ranks_on_it) {
    switch (kind) {
        case cluster::DeviceKind::automatic:
        case cluster::DeviceKind::cpu:
            break;
        case cluster::DeviceKind::cuda:
            return backend::make_cuda_device(index, ranks_on_it);
    }
    return backend::make_cpu_device(threads, std::move(free_memory));
}

void check_precision(const config::Config& config, const backend::Device& device, const std::string& node) {
    if (!config.trains()) {
        return;
    }
    const std::string processor = fmt::format("the processor of {} ({})", node, cluster::this_machine().cpu);
    for (const train::Recipe& recipe : config::trial_recipes(config)) {
        train::check_precision(recipe.training.precision, device, processor);
    }
}

OpenedDevice open_device(const comm::Session& session, const config::Config& config, const Placement& placement) {
    std::vector<backend::DeviceDescription> mine;
    on_every_rank(MPI_COMM_WORLD, [&] {
        if (config.trains() && cluster::may_use_cuda(config.workers.device)) {
            mine = backend::cuda_devices();
        }
    });
    cluster::DeviceMap map;
    map.device.assign(placement.layout.places.size(), cluster::no_device);
    if (config.trains()) {
        map = map_everywhere(config, placement, mine);
    }
    if (session.world_rank() == 0) {
        for (const std::string& note : map.notes) {
            spdlog::info("{}", note);
        }
        for (const std::string& warning : map.warnings) {
            spdlog::warn("{}", warning);
        }
    }
    OpenedDevice opened;
    opened.communicator = map.communicator;
    const auto rank = static_cast<std::size_t>(session.world_rank());
    const int index = map.device.at(rank);
    on_every_rank(MPI_COMM_WORLD, [&] {
        const cluster::Place& place = placement.mine(session.world_rank());
        opened.ranks_on_it = index != cluster::no_device ? map.sharing.at(rank) : 1;
        opened.device =
            make_device(map.kind, index, placement.threads, free_memory(place.local_ranks), opened.ranks_on_it);
    });
    opened.description = opened.device->name();
    if (index != cluster::no_device) {
        opened.uuid = mine.at(static_cast<std::size_t>(index)).uuid;
        opened.description = fmt::format("{} {} ({})", map.name(rank), opened.device->name(), opened.uuid);
    }
    return opened;
}

}  // namespace finch::run
