#include "finch/cluster/environment.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

using namespace finch::cluster;
using Variables = std::map<std::string, std::string>;

TEST_CASE("Environment: a number is a whole number or nothing") {
    const Environment environment(
        Variables{{"good", "42"}, {"negative", "-3"}, {"empty", ""}, {"tail", "4x"}, {"real", "1.5"}});

    CHECK(environment.number("good") == 42);
    CHECK(environment.number("negative") == -3);
    for (const char* name : {"empty", "tail", "real", "absent"}) {
        CAPTURE(name);
        CHECK_FALSE(environment.number(name).has_value());
    }
    CHECK(environment.text("empty") == "");
    CHECK_FALSE(environment.text("absent").has_value());
}

TEST_CASE("Environment: of_this_process sees what setenv set, also with an equals sign in the value") {
    ::setenv("FINCH_TEST_VARIABLE", "a=b", 1);

    CHECK(Environment::of_this_process().text("FINCH_TEST_VARIABLE") == "a=b");
}

TEST_CASE("Environment: at_start does not see what was set later") {
    ::setenv("FINCH_TEST_LATER", "1", 1);

    CHECK_FALSE(Environment::at_start().text("FINCH_TEST_LATER").has_value());
    CHECK(Environment::at_start().text("PATH") == Environment::of_this_process().text("PATH"));
}

TEST_CASE("Slurm: everything is absent outside a job") {
    const Slurm slurm = Slurm::read(Environment(Variables{{"PATH", "/bin"}}));

    CHECK_FALSE(slurm.job_id.has_value());
    CHECK_FALSE(slurm.step_tasks.has_value());
    CHECK_FALSE(slurm.end_time.has_value());
    CHECK(slurm.restart_count == 0);
}

TEST_CASE("Slurm: reads the variables of a job step") {
    const Slurm slurm = Slurm::read(Environment(Variables{{"SLURM_JOB_ID", "17"},
                                                          {"SLURM_PROCID", "3"},
                                                          {"SLURM_LOCALID", "1"},
                                                          {"SLURM_STEP_NUM_TASKS", "4"},
                                                          {"SLURM_CPUS_PER_TASK", "8"},
                                                          {"SLURM_RESTART_COUNT", "2"},
                                                          {"SLURM_JOB_END_TIME", "1790000000"},
                                                          {"FINCH_DEADLINE", "5"}}));

    CHECK(slurm.job_id == "17");
    CHECK(slurm.localid == 1);
    CHECK(slurm.step_tasks == 4);
    CHECK(slurm.cpus_per_task == 8);
    CHECK(slurm.restart_count == 2);
    CHECK(slurm.end_time == 1790000000.0);
}

TEST_CASE("Slurm: the job script's deadline serves where Slurm is too old to say") {
    CHECK(Slurm::read(Environment(Variables{{"FINCH_DEADLINE", "1790000001"}})).end_time == 1790000001.0);
    CHECK_FALSE(Slurm::read(Environment(Variables{{"FINCH_DEADLINE", ""}})).end_time.has_value());
    CHECK_FALSE(Slurm::read(Environment(Variables{{"FINCH_DEADLINE", "0"}})).end_time.has_value());
}

TEST_CASE("launch_problem: a lonely rank in a step of several tasks is told what to do") {
    Slurm slurm;
    slurm.step_tasks = 4;

    const auto problem = launch_problem(slurm, 1);

    REQUIRE(problem.has_value());
    CHECK(problem->find("4 tasks") != std::string::npos);
    CHECK(problem->find("srun --mpi=pmix") != std::string::npos);
    CHECK(problem->find("srun --mpi=list") != std::string::npos);
}

TEST_CASE("launch_problem: nothing where ranks and tasks agree, or outside a step") {
    Slurm slurm;
    CHECK_FALSE(launch_problem(slurm, 1).has_value());
    slurm.step_tasks = 1;
    CHECK_FALSE(launch_problem(slurm, 1).has_value());
    slurm.step_tasks = 4;
    CHECK_FALSE(launch_problem(slurm, 4).has_value());
}

TEST_CASE("ranks_on_node: reads mpirun's number and Slurm's short lists") {
    struct Row {
        Variables variables;
        std::optional<long long> ranks;
    };
    const std::vector<Row> rows{
        {{}, std::nullopt},
        {{{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}, {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}}, 3},
        {{{"SLURM_STEP_TASKS_PER_NODE", "2"}}, 2},
        {{{"SLURM_STEP_TASKS_PER_NODE", "1e9"}}, std::nullopt},
        {{{"SLURM_STEP_TASKS_PER_NODE", "2(x1000000000)"}, {"SLURM_NTASKS_PER_NODE", "3"}}, 3},
        {{{"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}, {"SLURM_NODEID", "2"}}, 2},
        {{{"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}, {"SLURM_NODEID", "3"}}, 1},
        {{{"SLURM_STEP_TASKS_PER_NODE", "4,2(x2),7"}, {"SLURM_NODEID", "3"}}, 7},
        {{{"SLURM_STEP_TASKS_PER_NODE", "2"}, {"SLURM_NODEID", "1"}, {"SLURM_NTASKS_PER_NODE", "5"}}, 5},
        {{{"SLURM_NTASKS_PER_NODE", "6"}}, 6},
    };
    for (std::size_t row = 0; row < rows.size(); ++row) {
        CAPTURE(row);
        CHECK(ranks_on_node(Environment(rows[row].variables)) == rows[row].ranks);
    }
}

TEST_CASE("node_is_crowded: more ranks than cores, unless the launcher gave each its own") {
    struct Row {
        Variables variables;
        int cpus;
        bool crowded;
    };
    const std::vector<Row> rows{
        {{}, 1, false},
        {{{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}, 2, true},
        {{{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}, 4, false},
        {{{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_MCA_orte_bound_at_launch", "1"}}, 1, false},
        {{{"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}, {"SLURM_CPUS_ON_NODE", "2"}}, 1, false},
        {{{"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}, {"SLURM_CPUS_ON_NODE", "2"}}, 1, true},
        {{{"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}}, 1, true},
    };
    for (std::size_t row = 0; row < rows.size(); ++row) {
        CAPTURE(row);
        CHECK(node_is_crowded(Environment(rows[row].variables), rows[row].cpus) == rows[row].crowded);
    }
}

TEST_CASE("usable_cpus: follows the process's affinity") {
    cpu_set_t before;
    REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
    CHECK(usable_cpus() == CPU_COUNT(&before));
    int first = 0;
    while (!CPU_ISSET(first, &before)) {
        ++first;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);

    REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
    const int bound = usable_cpus();
    REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);

    CHECK(bound == 1);
}

TEST_CASE("host_name: is the kernel's node name") {
    CHECK_FALSE(host_name().empty());
    CHECK(host_name().find('\0') == std::string::npos);
}

namespace {

Environment of(std::map<std::string, std::string> variables) {
    return Environment(std::move(variables));
}

}  // namespace

TEST_CASE("launch_problem before MPI_Init: a step of several tasks without PMIx is told what to do, others are not") {
    const auto problem = launch_problem(of({{"SLURM_STEP_NUM_TASKS", "4"}}));

    REQUIRE(problem.has_value());
    CHECK(problem->find("srun started 4 tasks") != std::string::npos);
    CHECK_FALSE(launch_problem(of({{"SLURM_STEP_NUM_TASKS", "4"}, {"PMIX_RANK", "0"}})).has_value());
    CHECK_FALSE(launch_problem(of({{"SLURM_STEP_NUM_TASKS", "1"}})).has_value());
    CHECK_FALSE(launch_problem(of({{"SLURM_NTASKS", "4"}})).has_value());
    CHECK_FALSE(launch_problem(of({{"SLURM_STEP_NUM_TASKS", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}})).has_value());
}

TEST_CASE("nodes_of_ranks: Slurm's block layout, one node under mpirun, else nothing") {
    const std::map<std::string, std::string> step{{"SLURM_STEP_NODELIST", "n[1-2]"},
                                                  {"SLURM_STEP_TASKS_PER_NODE", "2,1"}};
    auto cyclic = step;
    cyclic["SLURM_DISTRIBUTION"] = "cyclic";

    CHECK(nodes_of_ranks(Environment(step), 3) == std::vector<std::string>{"n1", "n1", "n2"});
    CHECK(nodes_of_ranks(Environment(step), 4).empty());
    CHECK(nodes_of_ranks(Environment(cyclic), 3).empty());
    CHECK(nodes_of_ranks(of({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}), 2) == std::vector<std::string>(2, host_name()));
    CHECK(nodes_of_ranks(of({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}), 4).empty());
}

TEST_CASE("ranks_expected: what the launcher says") {
    CHECK(ranks_expected(of({{"OMPI_COMM_WORLD_SIZE", "5"}, {"SLURM_STEP_NUM_TASKS", "1"}})) == 5);
    CHECK(ranks_expected(of({{"SLURM_STEP_NUM_TASKS", "7"}})) == 7);
    CHECK_FALSE(ranks_expected(of({})).has_value());
}
