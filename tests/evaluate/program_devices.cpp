#include "finch/evaluate/program_environment.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace finch;
using namespace finch::evaluate;
using config::Launch;

namespace {

/// Returns the devices that a worker of two ranks on one node finds. `of_rank` returns the environment of a rank.
template <class OfRank>
ProgramDevices found(const OfRank& of_rank, Launch launch = Launch::ranks) {
    const comm::Group group(MPI_COMM_WORLD, 0, comm::rank_of(MPI_COMM_WORLD));
    return devices_of_worker(group, {{"n1", "n1"}, {0, 1}}, launch, cluster::Environment(of_rank(group.rank())));
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the devices of both ranks are found for every kind of visibility variable") {
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}) {
        CAPTURE(name);
        const ProgramDevices all = found([&](int) { return Variables{{name, "4,5,6"}}; });
        CHECK(all.variables == Variables{{name, "4,5"}});
        CHECK(all.seen == 2);
        CHECK(all.problem.empty());
        const ProgramDevices own = found([&](int rank) { return Variables{{name, rank == 0 ? "2" : "3"}}; });
        CHECK(own.variables == Variables{{name, "2,3"}});
        CHECK(own.problem.empty());
    }
}

TEST_CASE("HIP_VISIBLE_DEVICES numbers the devices that ROCR_VISIBLE_DEVICES leaves visible") {
    const ProgramDevices all = found([](int) {
        return Variables{{"ROCR_VISIBLE_DEVICES", "6,7"}, {"HIP_VISIBLE_DEVICES", "6,7"}};
    });
    CHECK(all.variables == Variables{{"HIP_VISIBLE_DEVICES", "0,1"}, {"ROCR_VISIBLE_DEVICES", "6,7"}});
    const ProgramDevices own = found([](int rank) {
        return Variables{
            {"ROCR_VISIBLE_DEVICES", rank == 0 ? "6" : "7"}, {"HIP_VISIBLE_DEVICES", "0"}, {"GPU_DEVICE_ORDINAL", "0"}};
    });
    CHECK(own.variables ==
          Variables{{"GPU_DEVICE_ORDINAL", "0,1"}, {"HIP_VISIBLE_DEVICES", "0,1"}, {"ROCR_VISIBLE_DEVICES", "6,7"}});
    CHECK(own.seen == 2);
    CHECK(own.problem.empty());
}

TEST_CASE("a program started by the leader may use the CPUs of all ranks on the leader's node") {
    const comm::Group group(MPI_COMM_WORLD, 0, comm::rank_of(MPI_COMM_WORLD));
    const std::vector<int> own = group.rank() == 0 ? std::vector{4, 5} : std::vector{100, 5, 3};

    CHECK(cpus_of_worker(group, {{"n1", "n1"}, {0, 1}}, Launch::leader, own) == std::vector{3, 4, 5, 100});
    CHECK(cpus_of_worker(group, {{"n1", "n2"}, {0, 0}}, Launch::leader, {group.rank()}) == std::vector{group.rank()});
    CHECK(cpus_of_worker(group, {{"n1", "n1"}, {0, 1}}, Launch::ranks, own).empty());
}

TEST_CASE("a rank without its own device is reported, with the Slurm option that solves the problem") {
    const auto each_is_0 = [](int) { return Variables{{"CUDA_VISIBLE_DEVICES", "0"}, {"SLURM_GPUS_PER_TASK", "1"}}; };
    for (const Launch launch : {Launch::ranks, Launch::leader}) {
        const ProgramDevices found_by = found(each_is_0, launch);
        CHECK(contains(found_by.problem, "CUDA_VISIBLE_DEVICES=0"));
        CHECK(contains(found_by.problem, "--gpus-per-node instead of --gpus-per-task"));
    }
    const auto part = [](int rank) { return Variables{{"CUDA_VISIBLE_DEVICES", rank == 0 ? "MIG-a" : "MIG-b"}}; };
    CHECK(contains(found(part).problem, "at most one MIG device"));
    const auto one_of_two = [](int rank) { return Variables{{"ROCR_VISIBLE_DEVICES", rank == 0 ? "1" : ""}}; };
    CHECK(contains(found(one_of_two).problem, "see 1 (ROCR_VISIBLE_DEVICES=1)"));
}

TEST_CASE("no problem is reported without devices, or if one program uses the only device") {
    for (const char* none : {"", "-1", "NoDevFiles"}) {
        const ProgramDevices nothing = found([&](int) { return Variables{{"CUDA_VISIBLE_DEVICES", none}}; });
        CHECK(nothing.variables.empty());
        CHECK(nothing.problem.empty());
    }
    CHECK(found([](int) { return Variables{{"CUDA_VISIBLE_DEVICES", "0"}}; }, Launch::leader).problem.empty());
}
