#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace finch::cluster {

/// The environment variables of a process, or those that a test hands in.
class Environment {
public:
    explicit Environment(std::map<std::string, std::string> variables) : variables_(std::move(variables)) {}
    [[nodiscard]] static Environment of_this_process();
    /// The environment with which this process was started, without later changes by it and its libraries.
    [[nodiscard]] static Environment at_start();

    [[nodiscard]] std::optional<std::string> text(const std::string& name) const;
    /// A whole number. Nothing if unset, empty or no number.
    [[nodiscard]] std::optional<long long> number(const std::string& name) const;
    [[nodiscard]] const std::map<std::string, std::string>& all() const noexcept { return variables_; }

private:
    std::map<std::string, std::string> variables_;
};

/// Slurm's variables of this process. All absent outside a job.
struct Slurm {
    std::optional<std::string> job_id;       ///< SLURM_JOB_ID
    std::optional<std::string> cluster;      ///< SLURM_CLUSTER_NAME
    std::optional<std::string> node_list;    ///< SLURM_STEP_NODELIST, else SLURM_JOB_NODELIST
    std::optional<long long> localid;        ///< SLURM_LOCALID
    std::optional<long long> step_tasks;     ///< SLURM_STEP_NUM_TASKS
    std::optional<long long> cpus_per_task;  ///< SLURM_CPUS_PER_TASK
    long long restart_count = 0;             ///< SLURM_RESTART_COUNT: how often the job was requeued
    std::optional<double> end_time;          ///< Unix seconds: SLURM_JOB_END_TIME (Slurm 23.02 on), else FINCH_DEADLINE
    std::vector<std::string> warnings;       ///< variables whose values cannot be true, and are ignored

    /// `now`: Unix seconds. A deadline before it is of another job, or of a wrong clock.
    [[nodiscard]] static Slurm read(const Environment& environment, double now);
    [[nodiscard]] static Slurm read(const Environment& environment);
};

/// How an MPI library finds the ranks of a Slurm step.
struct MpiStart {
    bool speaks_pmi = true;            ///< PMI-1 or PMI-2, not PMIx alone
    bool starts_alone_in_step = true;  ///< a single process in a step starts without PMIx; not in Open MPI before 5
};

/// An error text where srun and MPI do not speak with each other: world size 1 inside a step of several tasks.
[[nodiscard]] std::optional<std::string> launch_problem(const Slurm& slurm, int world_size);

/// The same before MPI_Init, which would fail with messages of its own: the environment of a Slurm step has no process
/// management interface that this MPI supports (`srun --mpi=none`, `srun --mpi=pmi2`).
[[nodiscard]] std::optional<std::string> launch_problem(const Environment& environment, const MpiStart& mpi);

/// How many ranks the launcher started, as far as it tells before MPI_Init.
[[nodiscard]] std::optional<long long> ranks_expected(const Environment& environment);

/// The node of each rank, as far as the environment tells: all on this one, or as Slurm's step is laid out in blocks.
/// Else empty.
[[nodiscard]] std::vector<std::string> nodes_of_ranks(const Environment& environment, int world_size);

/// How many processes of this MPI job share the node, as far as the launcher tells before MPI_Init: mpirun by
/// OMPI_COMM_WORLD_LOCAL_SIZE, srun by SLURM_STEP_TASKS_PER_NODE ("2(x3),1", by SLURM_NODEID) or
/// SLURM_NTASKS_PER_NODE. Nothing if none of them says so; a list that cannot be read says nothing.
[[nodiscard]] std::optional<long long> ranks_on_node(const Environment& environment);

/// Whether the node has more ranks than cores for them, so that a waiting rank must give its core away.
/// `usable_cpus`: of this process. A rank that the launcher bound counts as having a core of its
/// own.
[[nodiscard]] bool node_is_crowded(const Environment& environment, int usable_cpus);

/// CPUs that this process may run on, by number. Nothing, with the reason in errno, where the kernel does not say.
[[nodiscard]] std::vector<int> own_cpus();
/// How many they are; those of the node if the kernel does not say.
[[nodiscard]] int usable_cpus();
[[nodiscard]] std::string host_name();

}  // namespace finch::cluster
