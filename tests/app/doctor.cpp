// The problems and texts of finch doctor for given facts.
#include "finch/app/doctor.hpp"

#include "finch/base/message.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::app;

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

/// Returns the facts of ranks on a node with two devices, without any problem.
Facts good_facts(int ranks = 1) {
    RankFacts rank;
    rank.program = "Finch 1";
    rank.node = "n1";
    rank.machine = {.cpu = "a CPU", .instructions = "AVX-512", .bfloat16 = "AMX"};
    rank.machine.nvidia_devices = 2;
    rank.cuda = {.built = true, .driver = 13000, .runtime = 13000, .cudnn = 91900, .cudnn_built = 91900};
    rank.devices = {device(0, "GPU-a"), device(1, "GPU-b")};
    rank.energy_of_cpus = "not measured: /sys/x/energy_uj: Permission denied";
    rank.energy_of_gpus = {"measured", "measured"};
    rank.file_system = {.path = "/scratch", .kind = "Lustre", .writes = true, .locks = true, .syncs = true};
    Facts facts;
    for (int number = 0; number < ranks; ++number) {
        rank.machine.cpus = {2 * number, 2 * number + 1};
        facts.ranks.push_back(rank);
    }
    facts.architectures = "80-real 90";
    facts.mpi = {"Open MPI v4.1.4", "funneled", ranks};
    facts.nccl = {22803, 22803};
    return facts;
}

/// Returns good facts of a rank that sees no device.
Facts without_devices() {
    Facts facts = good_facts();
    facts.ranks[0].devices.clear();
    facts.ranks[0].cuda.problem = "no CUDA-capable device is detected";
    return facts;
}

bool mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// Returns the only problem. Fails the test if there is not exactly one problem.
Problem only_problem(const Facts& facts) {
    const std::vector<Problem> problems = find_problems(facts);
    REQUIRE(problems.size() == 1);
    return problems.front();
}

void check_problem(const Facts& facts, bool stops, const std::string& part) {
    CAPTURE(part);
    CHECK(only_problem(facts).stops == stops);
    CHECK(mentions(only_problem(facts).what, part));
}

}  // namespace

TEST_CASE("a good node, and a node without GPUs, have no problems, with and without CUDA in the program") {
    CHECK(find_problems(good_facts(1)).empty());
    CHECK(find_problems(good_facts(2)).empty());
    CHECK(mentions(describe(good_facts(), {}), "nothing is wrong"));
    Facts facts = without_devices();
    CHECK(find_problems(facts).empty());  // Slurm may not have given them
    facts.ranks[0].machine.nvidia_devices = 0;
    facts.ranks[0].cuda = {.problem = "built without CUDA"};
    CHECK(find_problems(facts).empty());
}

TEST_CASE("GPUs that the program should see but does not see stop a run; the text has the reason and the remedy") {
    Facts no_driver = without_devices();
    no_driver.ranks[0].cuda.driver = 0;
    check_problem(no_driver, true, "apptainer --nv");
    Facts old_driver = without_devices();
    old_driver.ranks[0].cuda.driver = 12040;
    check_problem(old_driver, true, "the driver serves CUDA 12.4, the program was built with 13.0");
    Facts hidden = without_devices();
    hidden.ranks[0].variables["CUDA_VISIBLE_DEVICES"] = "";
    check_problem(hidden, true,
                  "n1: the program sees no GPU: no CUDA-capable device is detected; CUDA_VISIBLE_DEVICES=''");
    Facts granted = without_devices();
    granted.ranks[0].variables["SLURM_STEP_GPUS"] = "2,3";
    check_problem(granted, true, "Slurm gave GPUs (its numbers 2,3)");
    Facts unbuilt = without_devices();
    unbuilt.ranks[0].cuda = {};
    check_problem(unbuilt, false, "FINCH_CUDA=ON");
}

TEST_CASE("what finch evolve refuses stops a run: shared and lacking devices, MPI that sees other tasks than srun") {
    check_problem(good_facts(3), true, "share_device");
    Facts lacking = good_facts(2);
    lacking.ranks[1].node = "n2";
    lacking.ranks[1].devices.clear();
    check_problem(lacking, true, "rank 1 on n2");
    Facts tasks = good_facts();
    tasks.ranks[0].variables["SLURM_STEP_NUM_TASKS"] = "8";
    check_problem(tasks, true, "--mpi=pmix");
}

TEST_CASE("what finch evolve warns about is a hint") {
    Facts deadline = good_facts();
    deadline.ranks[0].variables["FINCH_DEADLINE"] = "1700000000";
    check_problem(deadline, false, "FINCH_DEADLINE=1700000000 is ignored");
    Facts names = good_facts();
    names.ranks[0].node = "box#1";
    check_problem(names, false, "several nodes have the host name box");
}

TEST_CASE("other programs on a node, and a device without code, stop a run and are reported once") {
    Facts programs = good_facts(2);
    programs.ranks[1].program = "Finch 2";
    check_problem(programs, true, "Finch 2");
    Facts new_devices = good_facts(2);
    for (RankFacts& rank : new_devices.ranks) {
        rank.devices[0].capability = rank.devices[1].capability = 75;
    }
    check_problem(new_devices, true, "compute capability 7.5");
}

TEST_CASE("ranks that see one device of a node each are a hint; ranks on two nodes are not") {
    Facts bound = good_facts(2);
    bound.ranks[0].devices = {device(0, "GPU-a")};
    bound.ranks[1].devices = {device(0, "GPU-b")};
    check_problem(bound, false, "--gpus-per-node=N");
    bound.ranks[1].node = "n2";
    CHECK(find_problems(bound).empty());
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
    facts.ranks[0].machine.cpus = facts.ranks[1].machine.cpus = {5};
    check_problem(facts, false, "2 ranks share 1 CPU ");
}

TEST_CASE("a directory without write permission stops a run; a directory without locks does not") {
    Facts facts = good_facts(2);
    facts.ranks[1].file_system.locks = false;
    facts.ranks[1].file_system.problem = "fcntl lock: Function not implemented";
    check_problem(facts, false, "Function not implemented");
    facts.ranks[1].file_system = {.path = "/root", .kind = "ext", .problem = "open: Permission denied"};
    check_problem(facts, true, "/root");
}

TEST_CASE("the text contains versions, devices, a line per rank, and the problems that stop a run first") {
    Facts facts = good_facts(2);
    facts.ranks[0].node = facts.ranks[1].node = "box#1";
    facts.ranks[1].program = "Finch 2";

    const std::string text = describe(facts, find_problems(facts));

    for (const char* part :
         {"NVIDIA H200, GPU-a, 141.0 GiB, capability 9.0", "9.19.0", "2.28.3", "serves CUDA 13.0", "energy measured",
          "CPUs (RAPL)        not measured: /sys/x/energy_uj", "rank 1", "funneled", "Lustre"}) {
        CAPTURE(part);
        CHECK(mentions(text, part));
    }
    CHECK(text.find("it stops a run: box#1 runs another program") < text.find("worth knowing: "));
}

TEST_CASE("round trip: RankFacts as a message") {
    RankFacts rank = good_facts().ranks[0];
    rank.variables = {{"NCCL_DEBUG", "INFO"}, {"CUDA_VISIBLE_DEVICES", ""}};
    rank.cuda.problem = "none";
    rank.machine.memory_limit_bytes = 1;
    rank.cpu_seconds = 2;
    rank.file_system.sync_seconds = 0.25;

    CHECK(from_message<RankFacts>(to_message(rank)) == rank);
    CHECK(from_message<RankFacts>(to_message(RankFacts{})) == RankFacts{});
}
