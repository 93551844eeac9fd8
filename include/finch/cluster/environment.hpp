#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace finch::cluster {

/// The environment variables of a process, or variables that a test provides.
class Environment {
public:
    explicit Environment(std::map<std::string, std::string> variables) : variables_(std::move(variables)) {}
    [[nodiscard]] static Environment of_this_process();
    /// Returns the environment with which this process was started, without later changes by the process and its
    /// libraries.
    [[nodiscard]] static Environment at_start();
    /// Returns the environment with which this process's mpirun was started; at_start() without mpirun. Empty if it
    /// cannot be read, or belongs to a daemon of Open MPI 4, to which mpirun adds its own options.
    [[nodiscard]] static Environment of_launcher();

    [[nodiscard]] std::optional<std::string> text(const std::string& name) const;
    /// Returns a variable as a whole number. Returns nothing if the variable is unset, empty or not a number.
    [[nodiscard]] std::optional<long long> number(const std::string& name) const;
    [[nodiscard]] const std::map<std::string, std::string>& all() const noexcept { return variables_; }

private:
    std::map<std::string, std::string> variables_;
};

/// The Slurm variables of this process. All are absent outside a job.
struct Slurm {
    std::optional<std::string> job_id;       ///< SLURM_JOB_ID
    std::optional<std::string> cluster;      ///< SLURM_CLUSTER_NAME
    std::optional<std::string> node_list;    ///< SLURM_STEP_NODELIST, else SLURM_JOB_NODELIST
    std::optional<long long> localid;        ///< SLURM_LOCALID
    std::optional<long long> step_tasks;     ///< SLURM_STEP_NUM_TASKS
    std::optional<long long> cpus_per_task;  ///< SLURM_CPUS_PER_TASK
    long long restart_count = 0;             ///< SLURM_RESTART_COUNT: number of requeues of the job
    std::optional<double> end_time;          ///< Unix seconds: SLURM_JOB_END_TIME (Slurm 23.02 on), else FINCH_DEADLINE
    std::vector<std::string> warnings;       ///< variables that are ignored because of impossible values

    /// `now`: Unix seconds. A deadline before `now` is ignored: it belongs to another job, or a clock is wrong.
    [[nodiscard]] static Slurm read(const Environment& environment, double now);
    [[nodiscard]] static Slurm read(const Environment& environment);
};

/// The ways in which an MPI library finds the ranks of a Slurm step.
struct MpiStart {
    bool speaks_pmi = true;            ///< supports PMI-1 or PMI-2 in addition to PMIx
    bool starts_alone_in_step = true;  ///< a step of one process starts without PMIx; false in Open MPI before 5
};

/// Returns an error text if the launcher and MPI do not work together: the world size is 1 although srun, or the mpirun
/// of another MPI library, started several processes. `environment`: from before MPI_Init. `launcher`: the right
/// mpirun.
[[nodiscard]] std::optional<std::string> launch_problem(const Environment& environment, int world_size,
                                                        const std::string& launcher);

/// Returns an error text if MPI_Init would fail because the environment of a Slurm step offers no process management
/// interface that this MPI supports (`srun --mpi=none`, `srun --mpi=pmi2`). MPI_Init would print less helpful messages.
[[nodiscard]] std::optional<std::string> launch_problem(const Environment& environment, const MpiStart& mpi);

/// Returns the number of ranks that the launcher started, if it is known before MPI_Init.
[[nodiscard]] std::optional<long long> ranks_expected(const Environment& environment);

/// Returns the rank of this process as the launcher reports it before MPI_Init; 0 without a launcher.
[[nodiscard]] long long rank_before_mpi(const Environment& environment);

/// Returns the node of each rank. Succeeds if all ranks are on this node, or if a Slurm step distributes the ranks in
/// blocks; otherwise returns nothing.
[[nodiscard]] std::vector<std::string> nodes_of_ranks(const Environment& environment, int world_size);

/// Returns the number of processes of this MPI job on this node, as far as the launcher reports it before MPI_Init.
/// Under mpirun this is OMPI_COMM_WORLD_LOCAL_SIZE. Under srun this is SLURM_STEP_TASKS_PER_NODE ("2(x3),1", indexed by
/// SLURM_NODEID) or SLURM_NTASKS_PER_NODE. Returns nothing if no variable is set. Ignores SLURM_STEP_TASKS_PER_NODE if
/// its list cannot be read.
[[nodiscard]] std::optional<long long> ranks_on_node(const Environment& environment);

/// True if the node has more ranks than cores, so a waiting rank must yield its core. `usable_cpus`: the number of CPUs
/// of this process. A rank that the launcher bound counts as having a core of its own.
[[nodiscard]] bool node_is_crowded(const Environment& environment, int usable_cpus);

/// Returns the numbers of the CPUs on which this process may run. If the kernel does not report them, returns nothing,
/// with the reason in errno.
[[nodiscard]] std::vector<int> own_cpus();
/// Returns the number of own_cpus(), or the number of CPUs of the node if the kernel does not report them.
[[nodiscard]] int usable_cpus();
[[nodiscard]] std::string host_name();

}  // namespace finch::cluster
