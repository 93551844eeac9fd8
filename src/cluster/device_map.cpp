#include "finch/cluster/device_map.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace finch::cluster {
namespace {

class Mapping {
public:
    Mapping(const std::vector<Place>& places, const std::vector<SeenDevices>& seen, const DeviceWishes& wishes)
        : places_(places), seen_(seen), wishes_(wishes) {}

    DeviceMap make() {
        map_.device.assign(places_.size(), no_device);
        if (wishes_.device != DeviceKind::automatic) {
            map_.kind = wishes_.device;
        }
        if (devices_are_used()) {
            map_.kind = DeviceKind::cuda;
            choose_devices();
            check_sharing();
            check_slots();
            warn_of_hidden_devices();
        }
        choose_communicator();
        return std::move(map_);
    }

private:
    [[nodiscard]] std::string name_of(std::size_t rank) const {
        return fmt::format("rank {} on {}", rank, places_[rank].node);
    }

    /// True if every rank has a device. Throws ConfigError if only some ranks have a device, or if a required device is
    /// missing.
    bool devices_are_used() {
        if (!may_use_cuda(wishes_.device)) {
            return false;
        }
        std::vector<std::string> without;
        std::set<std::string> reasons;
        for (std::size_t rank = 0; rank < seen_.size(); ++rank) {
            if (seen_[rank].uuids.empty()) {
                without.push_back(name_of(rank));
                reasons.insert(seen_[rank].problem.empty() ? "none is visible" : seen_[rank].problem);
            }
        }
        if (without.empty()) {
            return true;
        }
        const std::string why = fmt::format("{}", fmt::join(reasons, "; "));
        if (without.size() == seen_.size() && wishes_.device == DeviceKind::automatic) {
            map_.notes.push_back(fmt::format("no CUDA device ({}), using the CPU", why));
            return false;
        }
        const std::size_t count = without.size();
        without.resize(std::min<std::size_t>(count, 8));
        throw ConfigError(fmt::format(
            "workers.device: {}: no CUDA device for {} of {} ({}): {}{}. Ask Slurm for GPUs (--gpus-per-node=N "
            "--ntasks-per-node=N), look at CUDA_VISIBLE_DEVICES, or write workers.device: cpu; finch doctor tells more",
            word(wishes_.device), count, counted(std::ssize(seen_), "rank"), why, fmt::join(without, ", "),
            count > without.size() ? fmt::format(" and {} more", count - without.size()) : ""));
    }

    void choose_devices() {
        for (std::size_t rank = 0; rank < seen_.size(); ++rank) {
            const auto visible = static_cast<int>(seen_[rank].uuids.size());
            const int local = places_[rank].local_rank;
            map_.device[rank] = visible == 1 ? 0 : wishes_.share_device ? local % visible : local;
            if (map_.device[rank] >= visible) {
                throw ConfigError(fmt::format(
                    "workers.device: {} is number {} of its node and sees {} devices: more ranks than devices. Use "
                    "--ntasks-per-node={}, or let ranks share them: workers.share_device: true\n{}",
                    name_of(rank), local, visible, visible, table()));
            }
        }
    }

    [[nodiscard]] std::string uuid_of(std::size_t rank) const {
        const int index = map_.device[rank];
        const auto& uuids = seen_[rank].uuids;
        return index >= 0 && static_cast<std::size_t>(index) < uuids.size() ? uuids[static_cast<std::size_t>(index)]
                                                                            : "none";
    }

    /// Returns a table of the first 64 ranks and their devices, for error messages.
    [[nodiscard]] std::string table() const {
        std::string text =
            fmt::format("{:>6}  {:<16} {:>6} {:>8} {:>7}  {}\n", "rank", "node", "local", "visible", "device", "UUID");
        constexpr std::size_t most = 64;
        for (std::size_t rank = 0; rank < std::min(most, seen_.size()); ++rank) {
            text += fmt::format("{:>6}  {:<16} {:>6} {:>8} {:>7}  {}\n", rank, places_[rank].node,
                                places_[rank].local_rank, seen_[rank].uuids.size(), map_.device[rank], uuid_of(rank));
        }
        return text;
    }

    void check_sharing() {
        std::map<std::pair<std::string, std::string>, std::size_t> owner;  // first rank of (node, UUID)
        std::vector<int> users(seen_.size(), 0);                           // by owner
        std::vector<std::size_t> owner_of_rank;
        for (std::size_t rank = 0; rank < seen_.size(); ++rank) {
            const auto [first, is_new] = owner.try_emplace({places_[rank].node, uuid_of(rank)}, rank);
            ++users[first->second];
            owner_of_rank.push_back(first->second);
            if (is_new) {
                continue;
            }
            shared_ = true;
            if (!wishes_.share_device) {
                throw ConfigError(fmt::format(
                    "workers.device: ranks {} and {} would share the device {} of {}. Use as many ranks per node as "
                    "devices (--gpus-per-node=N --ntasks-per-node=N), or write workers.share_device: true\n{}",
                    first->second, rank, uuid_of(rank), places_[rank].node, table()));
            }
        }
        for (const std::size_t rank : owner_of_rank) {
            map_.sharing.push_back(users[rank]);
        }
    }

    void check_slots() const {
        if (wishes_.slots > 1 && wishes_.ranks_per_worker > 1) {
            throw ConfigError(fmt::format(
                "workers.slots: {} needs workers.ranks: 1 on GPUs (here {}): the sums of several slots on one "
                "communicator run one after another, and in another order on two ranks they would wait for ever",
                wishes_.slots, wishes_.ranks_per_worker));
        }
    }

    /// Warns if a rank sees a single device of its node: --gpus-per-task hides the other devices and prevents direct
    /// access.
    void warn_of_hidden_devices() {
        if (wishes_.ranks_per_worker == 1 || shared_) {
            return;
        }
        for (std::size_t rank = 0; rank < seen_.size(); ++rank) {
            if (seen_[rank].uuids.size() == 1 && places_[rank].local_ranks > 1) {
                map_.warnings.push_back(fmt::format(
                    "{} sees one device of several of its node: with --gpus-per-task or --tres-bind the ranks of a "
                    "worker cannot reach each other's memory directly; --gpus-per-node=N lets them",
                    name_of(rank)));
                return;
            }
        }
    }

    /// True if each rank has a different NCCL_HOSTID: NCCL then treats the ranks as different hosts.
    [[nodiscard]] bool have_host_ids() const {
        std::set<std::string> ids;
        for (const SeenDevices& one : seen_) {
            ids.insert(one.nccl_host_id);
        }
        return ids.size() == seen_.size() && !ids.contains("");
    }

    void choose_communicator() {
        const bool devices = map_.uses_devices();
        const bool nccl = std::all_of(seen_.begin(), seen_.end(), [](const SeenDevices& one) { return one.has_nccl; });
        check_communicator(devices, nccl);
        const bool wants_nccl = wishes_.communicator == AllReduceKind::nccl;
        if (wishes_.ranks_per_worker == 1) {
            // A worker with one rank needs no sums. A user who requests NCCL by name still gets NCCL, in a worker with
            // one slot.
            map_.communicator = wants_nccl && wishes_.slots == 1 ? AllReduceKind::nccl : AllReduceKind::none;
        } else if (!devices) {
            map_.communicator = AllReduceKind::mpi;
        } else if (wishes_.communicator == AllReduceKind::staged || (shared_ && !wants_nccl) || !nccl) {
            map_.communicator = AllReduceKind::staged;
        } else {
            map_.communicator = AllReduceKind::nccl;
        }
        if (wishes_.communicator == AllReduceKind::automatic && map_.communicator == AllReduceKind::staged) {
            map_.notes.push_back(shared_ ? "ranks share devices: their sums go through the host (staged)"
                                         : "built without NCCL: sums go through the host (staged)");
        }
    }

    void check_communicator(bool devices, bool nccl) {
        const auto refuse = [](const char* what, const char* why, const char* fits) {
            throw ConfigError(fmt::format("workers.communicator: {}: {}; here {} fit", what, why, fits));
        };
        switch (wishes_.communicator) {
            case AllReduceKind::none:
            case AllReduceKind::automatic:
                break;
            case AllReduceKind::nccl:
                if (!devices) {
                    refuse("nccl", "it sums on CUDA devices, and the ranks compute on CPUs", "auto and mpi");
                } else if (!nccl) {
                    refuse("nccl", "this program was built without NCCL", "auto and staged");
                } else if (shared_ && !have_host_ids()) {
                    refuse("nccl", "it does not let two ranks share a device", "auto and staged");
                } else if (shared_) {
                    map_.warnings.emplace_back(
                        "NCCL_HOSTID lets ranks share a device by NCCL: slow, and for trying things out only");
                }
                break;
            case AllReduceKind::staged:
                if (!devices) {
                    refuse("staged", "it takes sums from CUDA devices to MPI, and the ranks compute on CPUs",
                           "auto and mpi");
                }
                break;
            case AllReduceKind::mpi:
                if (devices) {
                    refuse("mpi", "MPI carries host memory only, and the ranks compute on CUDA devices",
                           nccl && !shared_ ? "auto, nccl and staged" : "auto and staged");
                }
                break;
        }
    }

    const std::vector<Place>& places_;
    const std::vector<SeenDevices>& seen_;
    const DeviceWishes& wishes_;
    DeviceMap map_;
    bool shared_ = false;  ///< true if several ranks use one device
};

}  // namespace

std::string DeviceMap::name(std::size_t rank) const {
    const int index = device.at(rank);
    return index == no_device ? std::string(word(kind)) : fmt::format("{}:{}", word(kind), index);
}

DeviceMap map_devices(const std::vector<Place>& places, const std::vector<SeenDevices>& seen,
                      const DeviceWishes& wishes) {
    return Mapping(places, seen, wishes).make();
}

}  // namespace finch::cluster
