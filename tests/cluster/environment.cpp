#include "finch/cluster/environment.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

using namespace finch::cluster;
using Variables = std::map<std::string, std::string>;

TEST_CASE("Environment: number() returns a whole number, or nothing for other text") {
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

TEST_CASE("Environment: of_this_process() contains variables that setenv set, also with an equals sign in the value") {
    ::setenv("FINCH_TEST_VARIABLE", "a=b", 1);

    CHECK(Environment::of_this_process().text("FINCH_TEST_VARIABLE") == "a=b");
}

TEST_CASE("Environment: at_start() does not contain variables that were set later") {
    ::setenv("FINCH_TEST_LATER", "1", 1);

    CHECK_FALSE(Environment::at_start().text("FINCH_TEST_LATER").has_value());
    CHECK(Environment::at_start().text("PATH") == Environment::of_this_process().text("PATH"));
}

TEST_CASE("Slurm: outside a job, no value is present") {
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
                                                          {"FINCH_DEADLINE", "5"}}),
                                    1789990000);

    CHECK(slurm.job_id == "17");
    CHECK(slurm.localid == 1);
    CHECK(slurm.step_tasks == 4);
    CHECK(slurm.cpus_per_task == 8);
    CHECK(slurm.restart_count == 2);
    CHECK(slurm.end_time == 1790000000.0);
    CHECK(slurm.warnings.empty());
}

TEST_CASE("Slurm: the job script's deadline is used if Slurm reports no end time") {
    const auto end_time = [](const char* text) {
        return Slurm::read(Environment(Variables{{"FINCH_DEADLINE", text}}), 1789990000).end_time;
    };
    CHECK(end_time("1790000001") == 1790000001.0);
    CHECK_FALSE(end_time("").has_value());
    CHECK_FALSE(end_time("0").has_value());
}

TEST_CASE("Slurm: impossible values are ignored with a warning that names the variable") {
    struct Row {
        const char* name;
        const char* value;
        const char* warning;
    };
    const std::vector<Row> rows{
        {"FINCH_DEADLINE", "1789990000", "FINCH_DEADLINE=1789990000 is ignored: the job would have ended at 2026-"},
        {"SLURM_JOB_END_TIME", "1700000000", "SLURM_JOB_END_TIME=1700000000 is ignored: the job would have ended"},
        {"FINCH_DEADLINE", "1790000000123", "is ignored: a whole number from 0 to 49"},
        {"FINCH_DEADLINE", "Unknown", "FINCH_DEADLINE=Unknown is ignored: a whole number"},
        {"SLURM_JOB_END_TIME", "-1", "SLURM_JOB_END_TIME=-1"},
        {"SLURM_CPUS_PER_TASK", "0", "SLURM_CPUS_PER_TASK=0 is ignored: a whole number from 1 to"},
        {"SLURM_CPUS_PER_TASK", "4294967297", "SLURM_CPUS_PER_TASK"},
        {"SLURM_LOCALID", "two", "SLURM_LOCALID"},
        {"SLURM_STEP_NUM_TASKS", "2\n", "SLURM_STEP_NUM_TASKS=2? is"},
        {"SLURM_RESTART_COUNT", "-2", "SLURM_RESTART_COUNT"},
        {"FINCH_START_SECONDS", "5m", "FINCH_START_SECONDS=5m"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CAPTURE(row.value);
        const Slurm slurm = Slurm::read(Environment(Variables{{row.name, row.value}}), 1789990000);

        CHECK_FALSE((slurm.end_time || slurm.cpus_per_task || slurm.localid || slurm.step_tasks));
        CHECK(slurm.restart_count == 0);
        REQUIRE(slurm.warnings.size() == 1);
        CHECK(slurm.warnings.front().find(row.warning) != std::string::npos);
    }
}

TEST_CASE("Slurm: the job script's deadline is used if Slurm's end time is impossible") {
    const Environment both(Variables{{"SLURM_JOB_END_TIME", "1700000000"}, {"FINCH_DEADLINE", "1790000000"}});

    CHECK(Slurm::read(both, 1789990000).end_time == 1790000000.0);
}

TEST_CASE("Slurm: a job's id, cluster and nodes contain no line breaks") {
    const Slurm slurm = Slurm::read(Environment(Variables{{"SLURM_JOB_ID", "17\nheartbeat 1"},
                                                          {"SLURM_CLUSTER_NAME", "juwels"},
                                                          {"SLURM_JOB_NODELIST", "n[1-4]"},
                                                          {"SLURM_STEP_NODELIST", "n[1-2]"}}));

    CHECK(slurm.job_id == "17?heartbeat 1");
    CHECK(slurm.cluster == "juwels");
    CHECK(slurm.node_list == "n[1-2]");
}

TEST_CASE("launch_problem: if each of several processes is a world of one rank, the message names the launcher") {
    const auto problem = [](std::map<std::string, std::string> variables, int world_size) {
        return launch_problem(Environment(std::move(variables)), world_size, "/opt/mpirun").value_or("");
    };
    const std::string step = problem({{"SLURM_STEP_NUM_TASKS", "4"}}, 1);

    CHECK(step.find("4 tasks") != std::string::npos);
    CHECK(step.find("srun --mpi=pmix") != std::string::npos);
    CHECK(step.find("srun --mpi=list") != std::string::npos);
    for (const std::string name : {"PMI_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_SIZE"}) {
        CHECK(problem({{name, "3"}, {"SLURM_STEP_NUM_TASKS", "1"}}, 1).find("Start it with /opt/mpirun.") !=
              std::string::npos);
        CHECK(problem({{name, "3"}}, 1).find("started 3 processes (" + name + "=3)") != std::string::npos);
        CHECK(problem({{name, "1"}}, 1).empty());
        CHECK(problem({{name, "3"}}, 3).empty());
    }
    CHECK(problem({}, 1).empty());
    CHECK(problem({{"SLURM_STEP_NUM_TASKS", "1"}}, 1).empty());
    CHECK(problem({{"SLURM_STEP_NUM_TASKS", "4"}}, 4).empty());
}

TEST_CASE("ranks_on_node: reads the number from mpirun or from Slurm's compressed lists") {
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

TEST_CASE("node_is_crowded: true if there are more ranks than cores, unless each rank has its own cores") {
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

TEST_CASE("usable_cpus: counts the CPUs in the affinity mask of the process") {
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

TEST_CASE("host_name: is not empty and contains no zero byte") {
    CHECK_FALSE(host_name().empty());
    CHECK(host_name().find('\0') == std::string::npos);
}

namespace {

Environment of(std::map<std::string, std::string> variables) {
    return Environment(std::move(variables));
}

}  // namespace

TEST_CASE("launch_problem before MPI_Init: reports a step with a PMI type that this MPI does not support") {
    struct Row {
        Variables variables;
        MpiStart mpi;
        const char* problem;  ///< empty: no problem
    };
    const MpiStart any{.speaks_pmi = true, .starts_alone_in_step = true};
    const MpiStart pmix{.speaks_pmi = false, .starts_alone_in_step = true};
    const MpiStart old{.speaks_pmi = false, .starts_alone_in_step = false};
    const Variables pmi2{
        {"SLURM_STEP_NUM_TASKS", "4"}, {"PMI_FD", "11"}, {"PMI_RANK", "0"}, {"SLURM_MPI_TYPE", "pmi2"}};
    const std::vector<Row> rows{
        {{{"SLURM_STEP_NUM_TASKS", "4"}}, any, "srun started 4 tasks with --mpi=none"},
        {{{"SLURM_STEP_NUM_TASKS", "4"}, {"PMIX_RANK", "0"}}, old, ""},
        {{{"SLURM_STEP_NUM_TASKS", "1"}}, old, ""},
        {{{"SLURM_NTASKS", "4"}}, old, ""},
        {{{"SLURM_STEP_NUM_TASKS", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, old, ""},
        {{{"SLURM_STEP_NUM_TASKS", "2"}, {"PMI_FD", "3"}, {"FLUX_JOB_ID", "f1"}}, old, ""},
        {pmi2, any, ""},
        {pmi2, pmix, "srun started 4 tasks with --mpi=pmi2, but this MPI needs pmix: they would be 4 separate runs"},
        {{{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_STEP_ID", "0"}}, pmix, ""},
        {{{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_STEP_ID", "0"}}, old, "srun started 1 task with --mpi=none, but"},
    };
    for (std::size_t row = 0; row < rows.size(); ++row) {
        CAPTURE(row);
        const auto problem = launch_problem(Environment(rows[row].variables), rows[row].mpi);

        CHECK(problem.has_value() == !std::string(rows[row].problem).empty());
        CHECK(problem.value_or("").find(rows[row].problem) != std::string::npos);
        CHECK((!problem || problem->find("`srun --mpi=pmix`") != std::string::npos));
    }
}

TEST_CASE("nodes_of_ranks: returns Slurm's block layout, or one node under mpirun, and otherwise nothing") {
    const std::map<std::string, std::string> step{{"SLURM_STEP_NODELIST", "n[1-2]"},
                                                  {"SLURM_STEP_TASKS_PER_NODE", "2,1"}};
    auto cyclic = step;
    cyclic["SLURM_DISTRIBUTION"] = "cyclic";

    CHECK(nodes_of_ranks(Environment(step), 3) == std::vector<std::string>{"n1", "n1", "n2"});
    CHECK(nodes_of_ranks(Environment(step), 4).empty());
    CHECK(nodes_of_ranks(Environment(cyclic), 3).empty());
    CHECK(nodes_of_ranks(of({{"SLURM_STEP_NODELIST", "n[x-y]"}, {"SLURM_STEP_TASKS_PER_NODE", "3"}}), 3).empty());
    CHECK(nodes_of_ranks(of({{"SLURM_STEP_NODELIST", "n1"}, {"SLURM_STEP_TASKS_PER_NODE", "all"}}), 3).empty());
    CHECK(nodes_of_ranks(of({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}), 2) == std::vector<std::string>(2, host_name()));
    CHECK(nodes_of_ranks(of({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}), 4).empty());
}

TEST_CASE("rank_before_mpi: the launcher's rank, not Slurm's of the batch script; 0 without a launcher") {
    CHECK(rank_before_mpi(of({})) == 0);
    CHECK(rank_before_mpi(of({{"SLURM_PROCID", "3"}})) == 3);
    CHECK(rank_before_mpi(of({{"SLURM_PROCID", "0"}, {"OMPI_COMM_WORLD_RANK", "2"}})) == 2);
    CHECK(rank_before_mpi(of({{"SLURM_PROCID", "0"}, {"PMIX_RANK", "1"}})) == 1);
}

TEST_CASE("ranks_expected: returns the number of ranks that mpirun or Slurm reports") {
    CHECK(ranks_expected(of({{"OMPI_COMM_WORLD_SIZE", "5"}, {"SLURM_STEP_NUM_TASKS", "1"}})) == 5);
    CHECK(ranks_expected(of({{"SLURM_STEP_NUM_TASKS", "7"}})) == 7);
    CHECK_FALSE(ranks_expected(of({})).has_value());
}
