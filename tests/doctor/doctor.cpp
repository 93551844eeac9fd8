// The problems and texts of finch doctor for given facts.
#include "finch/doctor/doctor.hpp"

#include "finch/base/message.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::doctor;

namespace {

backend::DeviceDescription device(int index, const std::string& uuid) {
    return {.index = index,
            .uuid = uuid,
            .name = "NVIDIA H200",
            .pci_bus_id = "0000:1b:00.0",
            .memory_bytes = std::int64_t{141} << 30,
            .capability = 90,
            .reaches = {false, true}};
}

/// Returns the facts of a rank on a node with two devices, without any problem.
RankFacts good_rank(int local_rank = 0) {
    RankFacts rank;
    rank.program = "Finch 1";
    rank.node = "n1";
    rank.machine = {
        .cpu = "a CPU", .instructions = "AVX-512", .bfloat16 = "AMX", .cpus = {2 * local_rank, 2 * local_rank + 1}};
    rank.machine.cpus_online = 64;
    rank.machine.memory_bytes = std::int64_t{1} << 40;
    rank.machine.open_files = 65536;
    rank.machine.nvidia_devices = 2;
    rank.cuda = {.built = true, .driver = 13000, .runtime = 13000, .cudnn = 91900, .cudnn_built = 91900};
    rank.devices = {device(0, "GPU-a"), device(1, "GPU-b")};
    rank.file_system = {.path = "/scratch", .kind = "Lustre", .writes = true, .locks = true, .syncs = true};
    rank.file_system.hard_links = true;
    return rank;
}

Facts good_facts(int ranks = 1) {
    Facts facts;
    for (int rank = 0; rank < ranks; ++rank) {
        facts.ranks.push_back(good_rank(rank));
    }
    facts.architectures = "80-real 90";
    facts.mpi = {"Open MPI v4.1.4", "funneled", ranks};
    facts.nccl = {22803, 22803};
    facts.hdf5 = "1.10.8";
    facts.onednn = "2.6.3";
    return facts;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// Returns the only problem. Fails the test if there is not exactly one problem.
Problem only_problem(const Facts& facts) {
    const std::vector<Problem> problems = find_problems(facts);
    for (const Problem& problem : problems) {
        INFO(problem.what);
    }
    REQUIRE(problems.size() == 1);
    return problems.front();
}

}  // namespace

TEST_CASE("a good node has no problems with one rank and with one rank per device") {
    CHECK(find_problems(good_facts(1)).empty());
    CHECK(find_problems(good_facts(2)).empty());
    CHECK(contains(describe(good_facts(), {}), "nothing is wrong"));
}

TEST_CASE("a node without GPUs has no problems, with and without CUDA in the program") {
    Facts facts = good_facts();
    facts.ranks[0].machine.nvidia_devices = 0;
    facts.ranks[0].devices.clear();
    facts.ranks[0].cuda.driver = 0;
    facts.ranks[0].cuda.problem = "no driver";
    CHECK(find_problems(facts).empty());
    facts.ranks[0].cuda = {.problem = "built without CUDA"};
    facts.architectures = "";
    facts.nccl = {};

    CHECK(find_problems(facts).empty());
}

TEST_CASE("a driver with an older major version than the runtime stops a run") {
    Facts facts = good_facts();
    facts.ranks[0].cuda.runtime = 13020;
    CHECK(find_problems(facts).empty());
    facts.ranks[0].cuda.driver = 12040;
    facts.ranks[0].devices.clear();

    const Problem problem = only_problem(facts);

    CHECK(problem.stops);
    CHECK(contains(problem.what, "CUDA 12.4"));
    CHECK(contains(problem.what, "13.2"));
    CHECK(contains(problem.mend, "CUDA 12;"));
}

TEST_CASE("devices that CUDA_VISIBLE_DEVICES hides stop a run, unlike a node without devices") {
    Facts facts = good_facts();
    facts.ranks[0].devices.clear();
    facts.ranks[0].variables["CUDA_VISIBLE_DEVICES"] = "";

    const Problem problem = only_problem(facts);

    CHECK(problem.stops);
    CHECK(contains(problem.what, "CUDA_VISIBLE_DEVICES=''"));
    CHECK(contains(problem.what, "n1"));
}

TEST_CASE("GPUs that Slurm allocated but CUDA does not find stop a run; the text has Slurm's numbers") {
    Facts facts = good_facts();
    facts.ranks[0].devices.clear();
    facts.ranks[0].cuda.problem = "no CUDA-capable device is detected";
    facts.ranks[0].variables["SLURM_STEP_GPUS"] = "2,3";

    const Problem problem = only_problem(facts);

    CHECK(problem.stops);
    CHECK(contains(problem.what, "2,3"));
    CHECK(contains(problem.what, "no CUDA-capable device is detected"));
}

TEST_CASE("devices without a driver library stop a run; without CUDA in the program they are only a hint") {
    Facts facts = good_facts();
    facts.ranks[0].devices.clear();
    facts.ranks[0].cuda.driver = 0;
    const Problem container = only_problem(facts);
    facts.ranks[0].cuda = {};
    const Problem unbuilt = only_problem(facts);

    CHECK(container.stops);
    CHECK(contains(container.mend, "--nv"));
    CHECK(!unbuilt.stops);
    CHECK(contains(unbuilt.mend, "FINCH_CUDA=ON"));
}

TEST_CASE("ranks that share a device and ranks without a device stop a run") {
    Facts shared = good_facts(3);
    Facts lacking = good_facts(2);
    lacking.ranks[1].node = "n2";
    lacking.ranks[1].devices.clear();

    CHECK(only_problem(shared).stops);
    CHECK(contains(only_problem(shared).what, "share_device"));
    CHECK(only_problem(lacking).stops);
    CHECK(contains(only_problem(lacking).what, "rank 1 on n2"));
}

TEST_CASE("--gpus-per-task is detected from the ranks' devices and from Slurm's variable") {
    Facts bound = good_facts(2);
    bound.ranks[0].devices = {device(0, "GPU-a")};
    bound.ranks[1].devices = {device(0, "GPU-b")};
    Facts asked = good_facts();
    asked.ranks[0].variables["SLURM_TRES_PER_TASK"] = "cpu:4,gres/gpu:1";

    for (const Facts& facts : {bound, asked}) {
        const Problem problem = only_problem(facts);
        CHECK(!problem.stops);
        CHECK(contains(problem.mend, "--gpus-per-node=N"));
    }
}

TEST_CASE("two nodes with one rank and one device each are not mistaken for --gpus-per-task") {
    Facts facts = good_facts(2);
    facts.ranks[0].devices = {device(0, "GPU-a")};
    facts.ranks[1].devices = {device(0, "GPU-b")};
    facts.ranks[1].node = "n2";

    CHECK(find_problems(facts).empty());
}

TEST_CASE("a mismatch of the task counts of srun and MPI stops a run") {
    Facts facts = good_facts();
    facts.ranks[0].variables["SLURM_STEP_NUM_TASKS"] = "8";

    const Problem problem = only_problem(facts);

    CHECK(problem.stops);
    CHECK(contains(problem.what, "--mpi=pmix"));
}

TEST_CASE("different program versions on two nodes stop a run") {
    Facts facts = good_facts(2);
    facts.ranks[1].program = "Finch 2";

    const Problem problem = only_problem(facts);

    CHECK(problem.stops);
    CHECK(contains(problem.what, "Finch 2"));
}

TEST_CASE("an unknown end of the Slurm job is a hint, unless FINCH_DEADLINE is set") {
    Facts facts = good_facts();
    facts.ranks[0].variables["SLURM_JOB_ID"] = "7";
    CHECK(!only_problem(facts).stops);
    facts.ranks[0].variables["FINCH_DEADLINE"] = "4000000000";

    CHECK(find_problems(facts).empty());
}

TEST_CASE("a past deadline and several nodes with one host name are hints") {
    Facts facts = good_facts();
    facts.ranks[0].variables["FINCH_DEADLINE"] = "1700000000";
    CHECK(contains(only_problem(facts).what, "FINCH_DEADLINE=1700000000 is ignored"));
    CHECK_FALSE(only_problem(facts).stops);

    facts = good_facts();
    facts.ranks[0].node = "box#1";
    CHECK(contains(only_problem(facts).what, "box#1: several nodes have one host name"));
    CHECK_FALSE(only_problem(facts).stops);
}

TEST_CASE("a device for which the program has no code stops a run, and is reported once") {
    Facts facts = good_facts(2);
    facts.architectures = "80-real 90-real";
    for (RankFacts& rank : facts.ranks) {
        for (backend::DeviceDescription& device : rank.devices) {
            device.capability = 100;
        }
    }

    const Problem problem = only_problem(facts);

    CHECK(problem.stops);
    CHECK(contains(problem.what, "10.0"));
    CHECK(contains(problem.mend, "CMAKE_CUDA_ARCHITECTURES=100"));
}

TEST_CASE("has_code_for: machine code runs on later minor versions, PTX runs on all later devices") {
    struct Row {
        const char* architectures;
        int capability;
        bool expected;
    };
    // See the CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility".
    for (const Row& row :
         {Row{"80-real", 80, true}, Row{"80-real", 86, true}, Row{"80-real", 90, false}, Row{"86-real", 80, false},
          Row{"80-real 90", 90, true}, Row{"80-real 90", 120, true}, Row{"90-virtual", 90, true},
          Row{"90-virtual", 80, false}, Row{"80", 75, false}, Row{"", 90, false}}) {
        CAPTURE(row.architectures);
        CAPTURE(row.capability);
        CHECK(has_code_for(row.architectures, row.capability) == row.expected);
    }
}

TEST_CASE("more ranks than CPUs on a node are a hint") {
    Facts facts = good_facts(2);
    facts.ranks[0].machine.cpus = {5};
    facts.ranks[1].machine.cpus = {6};
    CHECK(find_problems(facts).empty());
    facts.ranks[1].machine.cpus = {5};

    const Problem problem = only_problem(facts);

    CHECK(!problem.stops);
    CHECK(contains(problem.what, "2 ranks share 1 CPU;"));
}

TEST_CASE("a directory without write permission stops a run; a directory without locks does not") {
    Facts facts = good_facts(2);
    facts.ranks[1].file_system.locks = false;
    facts.ranks[1].file_system.problem = "fcntl lock: Function not implemented";
    const Problem unlocked = only_problem(facts);
    facts.ranks[1].file_system = {.path = "/root", .kind = "ext", .problem = "open: Permission denied"};
    const Problem closed = only_problem(facts);

    CHECK(!unlocked.stops);
    CHECK(contains(unlocked.what, "Function not implemented"));
    CHECK(closed.stops);
    CHECK(contains(closed.what, "/root"));
}

TEST_CASE("libraries older than those of the build are a hint; an older major version stops a run") {
    Facts facts = good_facts();
    facts.nccl = {22803, 22706};
    CHECK(!only_problem(facts).stops);
    CHECK(contains(only_problem(facts).what, "2.27.6"));
    facts.nccl = {22803, 22803};
    facts.ranks[0].cuda.cudnn = 89000;

    CHECK(only_problem(facts).stops);
}

TEST_CASE("values of environment variables that slow a run down are reported") {
    Facts facts = good_facts();
    facts.ranks[0].variables["CUDA_LAUNCH_BLOCKING"] = "0";
    CHECK(find_problems(facts).empty());
    facts.ranks[0].variables["CUDA_LAUNCH_BLOCKING"] = "1";

    CHECK(contains(only_problem(facts).what, "CUDA_LAUNCH_BLOCKING=1"));
}

TEST_CASE("process limits that are too low for CUDA and NCCL are hints") {
    Facts address = good_facts();
    address.ranks[0].machine.address_space_bytes = std::int64_t{16} << 30;
    Facts files = good_facts();
    files.ranks[0].machine.open_files = 128;

    CHECK(contains(only_problem(address).what, "ulimit -v"));
    CHECK(contains(only_problem(files).what, "ulimit -n"));
}

TEST_CASE("missing data of a configuration are a hint") {
    Facts facts = good_facts();
    facts.data = {{"configs/a.yaml", "60000 images", ""}, {"configs/b.yaml", "", "data/b: there is no such folder"}};

    const Problem problem = only_problem(facts);

    CHECK(!problem.stops);
    CHECK(contains(problem.what, "data/b"));
}

TEST_CASE("problems that stop a run come first, and the text has every problem with its solution") {
    Facts facts = good_facts();
    facts.ranks[0].machine.open_files = 128;
    facts.ranks[0].file_system = {.path = "/root", .kind = "ext", .problem = "open: Permission denied"};

    const std::vector<Problem> problems = find_problems(facts);
    const std::string text = describe(facts, problems);

    REQUIRE(problems.size() == 2);
    CHECK(problems[0].stops);
    CHECK(!problems[1].stops);
    for (const Problem& problem : problems) {
        CHECK(contains(text, problem.what));
        CHECK(contains(text, problem.mend));
    }
    CHECK(text.find("it stops a run") < text.find("worth knowing"));
}

TEST_CASE("the text contains versions, devices, peer access, and a line per rank") {
    Facts facts = good_facts(2);
    facts.ranks[1].variables["CUDA_VISIBLE_DEVICES"] = "0,1";

    const std::string text = describe(facts, {});

    for (const char* part :
         {"NVIDIA H200, GPU-a, 141.0 GiB, capability 9.0", "9.19.0", "2.28.3", "serves CUDA 13.0",
          "peers of 0         1: yes", "rank 1", "CUDA_VISIBLE_DEVICES '0,1'", "funneled", "Lustre"}) {
        CAPTURE(part);
        CHECK(contains(text, part));
    }
}

TEST_CASE("the text lists the energy counters; a counter that only root can read is a hint") {
    Facts facts = good_facts(2);
    facts.ranks[0].energy = {.cpus = "measured",
                             .gpus = {"measured", "not measured: the GPU GPU-b does not count its energy: no"}};
    CHECK(find_problems(facts).empty());
    const std::string measured = describe(facts, {});
    facts.ranks[1].energy = {"not measured: /sys/x/energy_uj: Permission denied", true, {}};
    CHECK(find_problems(facts).empty());  // the GPU counters of the rank are enough
    facts.ranks[1].devices.clear();
    facts.ranks[0].devices.clear();
    facts.ranks[0].machine.nvidia_devices = facts.ranks[1].machine.nvidia_devices = 0;
    facts.ranks[0].cuda.driver = facts.ranks[1].cuda.driver = 0;

    const Problem problem = only_problem(facts);

    CHECK(contains(measured, "CPUs (RAPL)"));
    CHECK(contains(measured, "device 0 (NVML)    measured\n"));
    CHECK(contains(measured, "device 1 (NVML)    not measured: the GPU GPU-b"));
    CHECK(!problem.stops);
    CHECK(contains(problem.what, "/sys/x/energy_uj: Permission denied"));
    CHECK(contains(problem.mend, "chmod a+r"));
    CHECK(contains(problem.mend, "workers.watts"));
}

TEST_CASE("round trip: RankFacts as a message") {
    RankFacts rank = good_rank(3);
    rank.variables = {{"NCCL_DEBUG", "INFO"}, {"CUDA_VISIBLE_DEVICES", ""}};
    rank.cuda.problem = "none";
    rank.cuda.cublas = 130200;
    rank.machine.memory_limit_bytes = 1;
    rank.machine.address_space_bytes = 2;
    rank.machine.locked_bytes = 3;
    rank.file_system.sync_seconds = 0.25;
    rank.energy = {"why not", true, {"", "because"}};
    rank.file_system.free_bytes = 4;

    CHECK(from_message<RankFacts>(to_message(rank)) == rank);
    CHECK(from_message<RankFacts>(to_message(RankFacts{})) == RankFacts{});
    CHECK(!(from_message<RankFacts>(to_message(rank)) == good_rank(3)));
}
