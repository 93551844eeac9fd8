#pragma once

#include "finch/backend/device.hpp"
#include "finch/cluster/device_map.hpp"
#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/run/startup.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace finch::run {

/// The device of this rank, and the kind of all-reduce in its worker.
struct OpenedDevice {
    std::unique_ptr<backend::Device> device;
    cluster::AllReduceKind communicator = cluster::AllReduceKind::none;
    std::string description;  ///< for the log: "cuda:1 NVIDIA H200 (GPU-…)", "cpu"
    std::string uuid;         ///< of a CUDA device; otherwise empty
    int ranks_on_it = 1;      ///< number of this run's ranks that use this CUDA device
};

/// Returns the devices that the configuration requests.
[[nodiscard]] cluster::DeviceWishes device_wishes(const config::Config& config);
/// Opens a device of type `kind`, which must not be automatic. `index`: the index of a CUDA device. `threads`: the
/// number of CPU threads of this rank. `free_memory`: returns the node memory that this rank may still use.
/// `ranks_on_it`: the number of ranks on the CUDA device.
[[nodiscard]] std::unique_ptr<backend::Device> make_device(cluster::DeviceKind kind, int index, int threads,
                                                           std::function<std::int64_t()> free_memory = {},
                                                           int ranks_on_it = 1);

/// Collective over the world. Gathers the visible devices of all ranks, assigns a device to each rank, and opens the
/// device of this rank. Throws ConfigError on every rank if the devices do not satisfy the configuration.
[[nodiscard]] OpenedDevice open_device(const comm::Session& session, const config::Config& config,
                                       const Placement& placement);

/// Throws ConfigError if `device`, on `node`, does not support a precision that networks of the search may have.
void check_precision(const config::Config& config, const backend::Device& device, const std::string& node);

}  // namespace finch::run
