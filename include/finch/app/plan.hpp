#pragma once

#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"
#include "finch/evaluate/command_line.hpp"
#include "finch/process/launcher.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace finch::app {

struct PlanOptions {
    std::filesystem::path config;
    std::vector<std::string> settings;
    std::optional<int> nodes;  ///< nothing: the nodes of the current allocation
    std::optional<int> ranks_per_node;
    int gpus_per_node = 0;
    bool measure = false;
    bool tries = false;                     ///< --try
    double measure_seconds = 120;           ///< approximate time for --measure
    std::optional<std::string> time_limit;  ///< of each start, in the format of sbatch --time
};
/// Prints the node and worker of each rank, the networks of the search, and the memory they need. Needs no MPI. Returns
/// the exit code.
[[nodiscard]] int plan(const PlanOptions& options);

/// Collective over the world. Prints the same as plan(), then trains some genomes of the search space on all ranks, in
/// workers of 1, 2, 4 … ranks. Prints the training times, the estimated duration of the search for each size of
/// workers, and an sbatch command for the best one. Returns the exit code on rank 0.
[[nodiscard]] int measure_plan(const comm::Session& session, const PlanOptions& options);

/// Collective over the world. Evaluates the first individual of the search on all ranks as one worker. Prints the
/// reports of the individual and, if it failed, the reason. Removes the files of the individual. Prints the plan first
/// if the options give the nodes. Returns the exit code: 0 if the individual has a result, exit_stopped if a signal
/// stopped the evaluation, otherwise 1.
[[nodiscard]] int try_plan(comm::Session& session, const PlanOptions& options, process::Launcher launcher);

/// The nodes and GPUs for which a plan is made.
struct Question {
    std::vector<std::string> node_of_rank;
    int gpus_per_node = 0;
    bool ranks_are_known = true;  ///< false: --nodes without --ranks-per-node, so one rank per node
};
/// Returns the nodes that the options give, otherwise the nodes of the Slurm allocation, otherwise `ranks_here`. If all
/// are empty, prints that the plan is for this machine, and returns it with ranks for all its cores.
[[nodiscard]] Question question_of(const PlanOptions& options, const config::Config& config,
                                   std::vector<std::string> ranks_here = {});

/// Returns the checked configuration. Prints notes about the first guesses (search.first).
[[nodiscard]] config::Config load_to_plan(const PlanOptions& options);
/// Prints remarks and warnings about the command line of a program.
void print_command_notes(const evaluate::CommandLine& line);
/// Prints the plan. `datasets`: the data; null if they are not on this machine.
void print_plan(const config::Config& config, const Question& question, const data::Datasets* datasets);

}  // namespace finch::app
