#include "finch/evaluate/program_environment.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace finch;
using namespace finch::evaluate;
using config::Launch;
using config::SlurmVariables;

namespace {

/// The second worker of a job: two ranks on n3, then two ranks on n2. This order is not the order of the names.
const WorkerPlaces worker{{"n3", "n3", "n2", "n2"}, {2, 3, 0, 1}};

const ProgramDevices devices{{{"CUDA_VISIBLE_DEVICES", "2,3"}}, 2, ""};

/// Returns variables that Slurm and Open MPI set for a rank of Finch in a job of three nodes.
cluster::Environment launch() {
    return cluster::Environment({{"SLURM_JOB_ID", "77"},
                                 {"SLURM_CONF", "/etc/slurm.conf"},
                                 {"SLURM_PROCID", "5"},
                                 {"SLURM_LOCALID", "3"},
                                 {"SLURM_NODEID", "1"},
                                 {"SLURM_NTASKS", "8"},
                                 {"SLURM_NTASKS_PER_NODE", "4"},
                                 {"SLURM_JOB_NUM_NODES", "3"},
                                 {"SLURM_JOB_NODELIST", "n[1-3]"},
                                 {"SLURM_STEP_NODELIST", "n[1-3]"},
                                 {"SLURM_STEP_ID", "2"},
                                 {"SLURM_STEP_GPUS", "3"},
                                 {"SLURM_GPUS_ON_NODE", "4"},
                                 {"SLURM_CPUS_PER_TASK", "2"},
                                 {"SLURM_CPU_BIND", "quiet,mask_cpu:0x8"},
                                 {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"},
                                 {"SLURM_PMIX_MAPPING_SERV", "(vector,(0,3,4))"},
                                 {"SLURM_MPI_TYPE", "pmix"},
                                 {"SLURM_OVERLAP", "1"},
                                 {"PRTE_MCA_plm_slurm_args", "--external-launcher"},
                                 {"HYDRA_LAUNCHER", "ssh"},
                                 {"SLURMD_NODENAME", "n2"},
                                 {"OMPI_COMM_WORLD_RANK", "5"},
                                 {"OMPI_MCA_orte_num_nodes", "3"},
                                 {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                 {"OMPI_MCA_plm", "slurm"},
                                 {"OMPI_MCA_btl_tcp_if_include", "eth0"},
                                 {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                 {"PMIX_RANK", "5"},
                                 {"PMIX_MCA_gds", "hash"},
                                 {"PMI_FD", "3"},
                                 {"FINCH_GENE_lr", "1"},
                                 {"HOME", "/home/me"}});
}

Variables variables_of(int rank, Launch how = Launch::ranks) {
    const ProgramPlace place(worker, rank, how);
    Variables all = torchrun_variables(place);
    all.merge(slurm_variables(launch(), worker, place, "n3", devices));
    all.merge(inherited_variables(launch(), cluster::Environment({}), SlurmVariables::worker));
    return all;
}

int number(const Variables& variables, const char* name) {
    CAPTURE(name);
    REQUIRE(variables.contains(name));
    return std::stoi(variables.at(name));
}

}  // namespace

TEST_CASE("torchrun, Lightning, jax and ignite derive the same rank from the variables of a two-node worker") {
    for (int rank = 0; rank < 4; ++rank) {
        CAPTURE(rank);
        const Variables its = variables_of(rank);
        CHECK(number(its, "RANK") == rank);
        CHECK(number(its, "WORLD_SIZE") == 4);
        // Lightning without torchrun and Slurm: rank = node number * number of devices + local rank.
        for (const char* node : {"NODE_RANK", "GROUP_RANK", "SLURM_NODEID"}) {
            CHECK(number(its, node) * number(its, "LOCAL_WORLD_SIZE") + number(its, "LOCAL_RANK") == rank);
        }
        // Lightning with torchrun creates no processes and computes the number of nodes.
        CHECK(number(its, "GROUP_WORLD_SIZE") * number(its, "LOCAL_WORLD_SIZE") == 4);
        CHECK(its.at("TORCHELASTIC_USE_AGENT_STORE") == "False");
        CHECK(number(its, "ROLE_RANK") == rank);
        CHECK(number(its, "ROLE_WORLD_SIZE") == 4);
        // Lightning with Slurm refuses SLURM_NTASKS without SLURM_NTASKS_PER_NODE.
        CHECK(number(its, "SLURM_NTASKS_PER_NODE") * number(its, "SLURM_NNODES") == number(its, "SLURM_NTASKS"));
        // jax expects the coordinator on the first node of the step.
        CHECK(its.at("SLURM_JOB_ID") == "77");
        CHECK(number(its, "SLURM_NTASKS") == 4);
        CHECK(number(its, "SLURM_PROCID") == rank);
        CHECK(number(its, "SLURM_LOCALID") == number(its, "LOCAL_RANK"));
        CHECK(its.at("SLURM_STEP_NODELIST").substr(0, 3) == "n3,");
        CHECK(number(its, "SLURM_STEP_NUM_NODES") == 2);
        // ignite compares the Slurm variables of the step and the job with torchrun's variables.
        CHECK(number(its, "SLURM_JOB_NUM_NODES") == 2);
        CHECK(its.at("SLURM_JOB_NODELIST") == "n3,n2");
        CHECK(its.at("SLURM_GTIDS") == (rank < 2 ? "0,1" : "2,3"));
        CHECK(its.at("SLURM_STEP_TASKS_PER_NODE") == "2(x2)");
        CHECK(its.at("SLURM_JOB_CPUS_PER_NODE") == "4(x2)");
        CHECK(number(its, "SLURM_CPUS_ON_NODE") == 4);
        CHECK(number(its, "SLURM_GPUS_ON_NODE") == 2);
        CHECK(its.at("SLURM_STEP_GPUS") == "2,3");
        CHECK(its.at("SLURM_LAUNCH_NODE_IPADDR") == "n3");
    }
}

TEST_CASE("Launch::leader: one task on one node, in an allocation of all nodes of the worker") {
    const Variables its = variables_of(0, Launch::leader);
    for (const char* one : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "SLURM_NTASKS", "SLURM_NNODES"}) {
        CHECK(number(its, one) == 1);
    }
    CHECK(its.at("SLURM_STEP_NODELIST") == "n3");
    CHECK(its.at("SLURM_NODELIST") == "n3,n2");
    CHECK(its.at("SLURM_TASKS_PER_NODE") == "2(x2)");
    // These would also be options of every srun in a job that the program submits.
    for (const char* option : {"SLURM_NTASKS_PER_NODE", "SLURM_OVERLAP", "SLURM_MEM_PER_NODE", "SLURM_MPI_TYPE"}) {
        CHECK_FALSE(its.contains(option));
    }
    CHECK(its.at("PRTE_MCA_plm_slurm_args") == "--overlap --mem=0 --external-launcher");
    CHECK(its.contains("OMPI_MCA_plm_slurm_args"));
    CHECK_FALSE(its.contains("HYDRA_LAUNCHER_EXTRA_ARGS"));  // MPICH starts its ranks with ssh here
}

TEST_CASE("SLURM_TASKS_PER_NODE lists unequal nodes; without a Slurm job there are no Slurm variables") {
    const WorkerPlaces uneven{{"a", "a", "b", "c"}, {0, 1, 0, 0}};
    const ProgramPlace last(uneven, 3, Launch::ranks);
    CHECK(slurm_variables(launch(), uneven, last, "a", {}).at("SLURM_TASKS_PER_NODE") == "2,1(x2)");
    CHECK(slurm_variables(launch(), uneven, last, "a", {}).at("SLURM_GTIDS") == "3");
    CHECK(slurm_variables(cluster::Environment(Variables{{"HOME", "/"}}), uneven, last, "a", {}).empty());
}

TEST_CASE("programs inherit the user's variables, but not the variables of Finch's own launch") {
    const cluster::Environment mpirun(Variables{{"OMPI_MCA_rmaps_base_oversubscribe", "1"}, {"OMPI_MCA_plm", "rsh"}});
    const Variables inherited = inherited_variables(launch(), mpirun, SlurmVariables::worker);
    for (const char* name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_MCA_orte_num_nodes", "OMPI_MCA_plm", "PMIX_RANK", "PMI_FD",
          "SLURM_PMIX_MAPPING_SERV", "SLURM_PROCID", "SLURM_CPU_BIND", "SLURM_STEP_GPUS", "FINCH_GENE_lr"}) {
        CAPTURE(name);
        CHECK_FALSE(inherited.contains(name));
    }
    for (const char* name : {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_rmaps_base_oversubscribe", "PMIX_MCA_gds",
                             "OMPI_ALLOW_RUN_AS_ROOT", "SLURM_JOB_ID", "SLURM_CONF", "SLURM_CPUS_PER_TASK", "HOME"}) {
        CAPTURE(name);
        CHECK(inherited.contains(name));
    }
    const Variables none = inherited_variables(launch(), mpirun, SlurmVariables::none);
    for (const auto& [name, value] : none) {
        CAPTURE(name);
        CHECK((!name.starts_with("SLURM") || name == "SLURM_CONF"));
    }
    CHECK(none.at("HOME") == "/home/me");
}

TEST_CASE("programs do not inherit variables of an outer Finch evaluation or of other launchers") {
    Variables around{{"FINCH_MNIST", "/data"}, {"FINCH_LOG", "warn"}, {"SLURM_JOB_ID", "77"}, {"MPI_HOME", "/opt/mpi"}};
    const Variables kept = around;
    for (const char* name :
         {"FINCH_ID",        "FINCH_SEED",          "FINCH_RUN",     "FINCH_FOLDER",     "FINCH_CHECKPOINT_DIR",
          "FINCH_RESUME",    "FINCH_HOSTS",         "FINCH_GENE_lr", "PET_NNODES",       "JAX_COORDINATOR_ADDRESS",
          "PALS_RANKID",     "FLUX_TASK_RANK",      "ALPS_APP_PE",   "MPI_RANKID",       "JSM_NAMESPACE_RANK",
          "MPI_LOCALRANKID", "MVP_COMM_WORLD_RANK", "SLURM_LABELIO", "SLURM_MULTI_PROG", "SLURM_OUTPUT",
          "SLURM_EXCLUSIVE", "FINCH_PARENT_EPOCH",  "SRUN_DEBUG",    "LOCAL_RANK"}) {
        around.emplace(name, "1");
    }

    CHECK(inherited_variables(cluster::Environment(around), cluster::Environment({}), SlurmVariables::worker) == kept);
}
