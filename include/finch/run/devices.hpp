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

/// This rank's device and how its worker sums.
struct OpenedDevice {
    std::unique_ptr<backend::Device> device;
    cluster::AllReduceKind communicator = cluster::AllReduceKind::none;
    std::string description;  ///< for the log: "cuda:1 NVIDIA H200 (GPU-…)", "cpu"
    std::string uuid;         ///< of a CUDA device
    int ranks_on_it = 1;      ///< of the run, that use this CUDA device
};

/// Devices that the configuration asks for.
[[nodiscard]] cluster::DeviceWishes device_wishes(const config::Config& config);
/// A device of `kind`, which is not automatic. `index`: that of a CUDA device. `threads` and `free_memory`: what the
/// rank may take of its node.
[[nodiscard]] std::unique_ptr<backend::Device> make_device(cluster::DeviceKind kind, int index, int threads,
                                                           std::function<std::int64_t()> free_memory = {});

/// Collective over the world. Finds out who sees which devices, decides who computes where, and opens this rank's.
/// Throws ConfigError on every rank where it cannot be as configured.
[[nodiscard]] OpenedDevice open_device(const comm::Session& session, const config::Config& config,
                                       const Placement& placement);

/// Throws ConfigError if `device`, on `node`, cannot compute in the precision of a network that may be bred.
void check_precision(const config::Config& config, const backend::Device& device, const std::string& node);

}  // namespace finch::run
