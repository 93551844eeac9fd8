#pragma once

#include "finch/cluster/layout.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace finch::cluster {

/// The all-reduce by which the ranks of a worker sum their gradients. `none`: the worker has one rank. `automatic`: the
/// choice depends on the devices.
enum class AllReduceKind { none, automatic, nccl, staged, mpi };
constexpr std::array<std::string_view, 5> words_of(AllReduceKind) {
    return {"none", "auto", "nccl", "staged", "mpi"};
}

enum class DeviceKind { automatic, cpu, cuda };
constexpr std::array<std::string_view, 3> words_of(DeviceKind) {
    return {"auto", "cpu", "cuda"};
}
/// True if ranks look for CUDA devices. With any other device kind, each rank has a device of its own on the host.
constexpr bool may_use_cuda(DeviceKind kind) {
    return kind == DeviceKind::automatic || kind == DeviceKind::cuda;
}

/// The devices that the configuration requests.
struct DeviceWishes {
    DeviceKind device = DeviceKind::automatic;
    AllReduceKind communicator = AllReduceKind::automatic;
    bool share_device = false;
    int slots = 1;
    int ranks_per_worker = 1;
};

/// The devices that are visible to one rank.
struct SeenDevices {
    std::vector<std::string> uuids;  ///< of the visible devices, by device index
    std::string problem;             ///< why no device is visible: CUDA's error text
    bool has_nccl = false;           ///< true if the program was built with NCCL
    std::string nccl_host_id;        ///< NCCL_HOSTID; ranks with different ids may share a device, for tests
};

constexpr int no_device = -1;

struct DeviceMap {
    DeviceKind kind = DeviceKind::cpu;  ///< of all ranks' devices; never automatic
    std::vector<int> device;            ///< by world rank: the index of its CUDA device, or no_device
    std::vector<int> sharing;           ///< by world rank: number of ranks on this device; empty without devices
    AllReduceKind communicator = AllReduceKind::none;
    std::vector<std::string> notes;     ///< for the log
    std::vector<std::string> warnings;  ///< for the log
    [[nodiscard]] bool uses_devices() const noexcept { return kind == DeviceKind::cuda; }
    /// Returns the name of a rank's device: "cuda:1", "cpu".
    [[nodiscard]] std::string name(std::size_t rank) const;
};

/// Assigns a device to each rank. A pure function of the devices that all ranks see, so all ranks get the same result.
/// `places` and `seen`: by world rank. A rank uses the device with the index of its local rank, or the only visible
/// device. Throws ConfigError with a table of the devices if two ranks would share a device. Throws ConfigError with
/// the names and nodes of ranks that have no device.
[[nodiscard]] DeviceMap map_devices(const std::vector<Place>& places, const std::vector<SeenDevices>& seen,
                                    const DeviceWishes& wishes);

}  // namespace finch::cluster
