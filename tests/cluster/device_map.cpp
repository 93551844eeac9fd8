#include "finch/cluster/device_map.hpp"

#include "finch/base/error.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::cluster;
using Device = DeviceKind;
using Sums = AllReduceKind;

namespace {

/// Returns the places of `ranks_of_node` ranks on each of `nodes` nodes.
std::vector<Place> places(int nodes, int ranks_of_node) {
    std::vector<Place> all;
    for (int node = 0; node < nodes; ++node) {
        for (int local = 0; local < ranks_of_node; ++local) {
            all.push_back({.node = "n" + std::to_string(node), .local_rank = local, .local_ranks = ranks_of_node});
        }
    }
    return all;
}

/// Every rank sees the first `count` devices of its node. The UUIDs are the same on all nodes.
std::vector<SeenDevices> sees(std::size_t ranks, int count, bool has_nccl = true) {
    SeenDevices one{.uuids = {}, .problem = count == 0 ? "no driver" : "", .has_nccl = has_nccl, .nccl_host_id = ""};
    for (int index = 0; index < count; ++index) {
        one.uuids.push_back("GPU-" + std::to_string(index));
    }
    return std::vector<SeenDevices>(ranks, one);
}

/// Every rank sees exactly one device of its own, as with --gpus-per-task.
std::vector<SeenDevices> sees_its_own(std::size_t ranks) {
    auto all = sees(ranks, 1);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        all[rank].uuids = {"GPU-" + std::to_string(rank)};
    }
    return all;
}

}  // namespace

TEST_CASE("map_devices: a rank's local rank is the index of its device") {
    const DeviceMap map = map_devices(places(2, 4), sees(8, 4), {.ranks_per_worker = 2});

    CHECK(map.device == std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3});
    CHECK(map.communicator == AllReduceKind::nccl);
    CHECK(map.kind == Device::cuda);
    CHECK(map.name(6) == "cuda:2");
}

TEST_CASE("map_devices: a rank that sees only one device uses it, with a warning for workers of several ranks") {
    const DeviceMap alone = map_devices(places(1, 4), sees_its_own(4), {});
    CHECK(alone.device == std::vector<int>{0, 0, 0, 0});
    CHECK(alone.warnings.empty());

    const DeviceMap together = map_devices(places(1, 4), sees_its_own(4), {.ranks_per_worker = 2});
    REQUIRE(together.warnings.size() == 1);
    CHECK(together.warnings[0].find("--gpus-per-node") != std::string::npos);
}

TEST_CASE("map_devices: two ranks on one device need share_device, and the communicator is then `staged`") {
    CHECK_THROWS_WITH_AS(static_cast<void>(map_devices(places(1, 2), sees(2, 1), {})),
                         doctest::Contains("share_device"), ConfigError);
    CHECK_THROWS_WITH_AS(static_cast<void>(map_devices(places(1, 2), sees(2, 1), {})), doctest::Contains("UUID"),
                         ConfigError);
    CHECK_THROWS_WITH_AS(static_cast<void>(map_devices(places(1, 3), sees(3, 2), {})),
                         doctest::Contains("--ntasks-per-node=2"), ConfigError);

    const DeviceMap shared = map_devices(places(1, 4), sees(4, 2), {.share_device = true, .ranks_per_worker = 2});
    CHECK(shared.device == std::vector<int>{0, 1, 0, 1});
    CHECK(shared.communicator == AllReduceKind::staged);
    CHECK(shared.notes.size() == 1);
    CHECK(shared.sharing == std::vector<int>{2, 2, 2, 2});
    CHECK(map_devices(places(1, 3), sees(3, 2), {.share_device = true}).sharing == std::vector<int>{2, 1, 2});
}

TEST_CASE("map_devices: the same UUID on two nodes means two devices") {
    CHECK(map_devices(places(2, 1), sees(2, 1), {}).device == std::vector<int>{0, 0});
    CHECK(map_devices(places(2, 1), sees(2, 1), {}).sharing == std::vector<int>{1, 1});
}

TEST_CASE("map_devices: without any device, auto uses the CPU with a note, and cuda throws with the reason") {
    const DeviceMap map = map_devices(places(2, 1), sees(2, 0), {.ranks_per_worker = 2});
    CHECK(map.kind == Device::cpu);
    CHECK(map.name(1) == "cpu");
    CHECK(map.communicator == AllReduceKind::mpi);
    REQUIRE(map.notes.size() == 1);
    CHECK(map.notes[0].find("no driver") != std::string::npos);

    const DeviceWishes wishes{.device = Device::cuda};
    CHECK_THROWS_WITH_AS(static_cast<void>(map_devices(places(2, 1), sees(2, 0), wishes)),
                         doctest::Contains("rank 1 on n1"), ConfigError);
    CHECK_THROWS_WITH_AS(static_cast<void>(map_devices(places(2, 1), sees(2, 0), wishes)),
                         doctest::Contains("no driver"), ConfigError);
}

TEST_CASE("map_devices: if some ranks have no device, an error names these ranks, even with auto") {
    auto seen = sees(4, 2);
    seen[3] = sees(1, 0)[0];

    CHECK_THROWS_WITH_AS(static_cast<void>(map_devices(places(2, 2), seen, {})), doctest::Contains("rank 3 on n1"),
                         ConfigError);
    CHECK_THROWS_WITH_AS(static_cast<void>(map_devices(places(2, 2), seen, {})), doctest::Contains("1 of 4 ranks"),
                         ConfigError);
    CHECK(!map_devices(places(2, 2), seen, {.device = Device::cpu}).uses_devices());
}

TEST_CASE("map_devices: several slots per worker require workers of one rank on GPUs, but not on CPUs") {
    const DeviceWishes wishes{.slots = 4, .ranks_per_worker = 2};
    CHECK_THROWS_WITH_AS(static_cast<void>(map_devices(places(1, 2), sees(2, 2), wishes)),
                         doctest::Contains("workers.slots"), ConfigError);
    CHECK(!map_devices(places(1, 2), sees(2, 0), wishes).uses_devices());
    CHECK(map_devices(places(1, 2), sees(2, 2), {.slots = 4}).uses_devices());
}

TEST_CASE("map_devices: an unsuitable communicator is refused with a list of the suitable ones") {
    const auto refused = [](int devices, bool nccl, bool share, Sums sums) -> std::string {
        try {
            static_cast<void>(map_devices(places(1, 2), sees(2, devices, nccl),
                                          {.communicator = sums, .share_device = share, .ranks_per_worker = 2}));
        } catch (const ConfigError& error) {
            return error.what();
        }
        return "";
    };

    CHECK(refused(0, true, false, Sums::nccl).find("auto and mpi fit") != std::string::npos);
    CHECK(refused(0, true, false, Sums::staged).find("auto and mpi fit") != std::string::npos);
    CHECK(refused(2, false, false, Sums::nccl).find("auto and staged fit") != std::string::npos);
    CHECK(refused(1, true, true, Sums::nccl).find("auto and staged fit") != std::string::npos);
    CHECK(refused(2, true, false, Sums::mpi).find("auto, nccl and staged fit") != std::string::npos);
    CHECK(refused(2, true, false, Sums::nccl).empty());
    CHECK(refused(2, true, false, Sums::staged).empty());
    CHECK(refused(0, true, false, Sums::mpi).empty());
}

TEST_CASE("map_devices: without NCCL, the communicator is `staged`; for workers of one rank, it is `none`") {
    CHECK(map_devices(places(1, 2), sees(2, 2, false), {.ranks_per_worker = 2}).communicator == AllReduceKind::staged);
    CHECK(map_devices(places(1, 2), sees(2, 2), {}).communicator == AllReduceKind::none);
}

TEST_CASE("map_devices: NCCL on a shared device is accepted if each rank has a different NCCL_HOSTID") {
    const DeviceWishes wishes{.communicator = Sums::nccl, .share_device = true, .ranks_per_worker = 2};
    auto seen = sees(2, 1);
    seen[0].nccl_host_id = "one";
    CHECK_THROWS_AS(static_cast<void>(map_devices(places(1, 2), seen, wishes)), ConfigError);
    seen[1].nccl_host_id = "one";
    CHECK_THROWS_AS(static_cast<void>(map_devices(places(1, 2), seen, wishes)), ConfigError);
    seen[1].nccl_host_id = "two";
    CHECK(map_devices(places(1, 2), seen, wishes).communicator == AllReduceKind::nccl);
}

TEST_CASE("map_devices: a worker of one rank gets NCCL if it requests NCCL and has one slot") {
    CHECK(map_devices(places(1, 2), sees(2, 2), {.communicator = Sums::nccl}).communicator == AllReduceKind::nccl);
    CHECK(map_devices(places(1, 2), sees(2, 2), {.communicator = Sums::nccl, .slots = 2}).communicator ==
          AllReduceKind::none);
}
