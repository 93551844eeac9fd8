#pragma once

#include "finch/cluster/layout.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace finch::cluster {

/// How a worker's ranks sum their gradients. none: there is one rank. automatic: as fits the devices.
enum class AllReduceKind { none, automatic, nccl, staged, mpi };
constexpr std::array<std::string_view, 5> words_of(AllReduceKind) {
    return {"none", "auto", "nccl", "staged", "mpi"};
}

enum class DeviceKind { automatic, cpu, cuda };
constexpr std::array<std::string_view, 3> words_of(DeviceKind) {
    return {"auto", "cpu", "cuda"};
}
/// Whether ranks look for CUDA devices. Every other kind is of the host: each rank has one of its own.
constexpr bool may_use_cuda(DeviceKind kind) {
    return kind == DeviceKind::automatic || kind == DeviceKind::cuda;
}

/// Devices that the configuration asks for.
struct DeviceWishes {
    DeviceKind device = DeviceKind::automatic;
    AllReduceKind communicator = AllReduceKind::automatic;
    bool share_device = false;
    int slots = 1;
    int ranks_per_worker = 1;
};

/// Devices that one rank sees.
struct SeenDevices {
    std::vector<std::string> uuids;  ///< of the devices that it sees, by index
    std::string problem;             ///< why it sees none, in CUDA's words
    bool has_nccl = false;           ///< the program was built with NCCL
    std::string nccl_host_id;        ///< NCCL_HOSTID: ranks with different ones may share a device, for tests
};

constexpr int no_device = -1;

struct DeviceMap {
    DeviceKind kind = DeviceKind::cpu;  ///< of all ranks' devices; never automatic
    std::vector<int> device;            ///< by world rank: the index of its CUDA device, or no_device
    std::vector<int> sharing;           ///< by world rank: how many ranks use that device; empty without devices
    AllReduceKind communicator = AllReduceKind::none;
    std::vector<std::string> notes;     ///< for the log
    std::vector<std::string> warnings;  ///< likewise
    [[nodiscard]] bool uses_devices() const noexcept { return kind == DeviceKind::cuda; }
    /// "cuda:1", "cpu".
    [[nodiscard]] std::string name(std::size_t rank) const;
};

/// Who computes on which device. A pure function of what all ranks see, so that all come to the same answer. `places`
/// and `seen`: by world rank. A rank's device is that of its local rank among those it sees, or the only one. Throws
/// ConfigError, with a table where two ranks would share a device, and naming the ranks and nodes without one.
[[nodiscard]] DeviceMap map_devices(const std::vector<Place>& places, const std::vector<SeenDevices>& seen,
                                    const DeviceWishes& wishes);

}  // namespace finch::cluster
