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
    std::optional<int> nodes;  ///< nothing: the allocation that this runs in
    std::optional<int> ranks_per_node;
    int gpus_per_node = 0;
    bool measure = false;
    bool tries = false;                     ///< --try
    double measure_seconds = 120;           ///< about
    std::optional<std::string> time_limit;  ///< of each start, as sbatch's --time
};
/// Who would run where, on which networks and how much memory. Needs no MPI; returns the exit code.
[[nodiscard]] int plan(const PlanOptions& options);

/// Collective over the world. The same; then trains some genomes of the space on all ranks, in workers of 1, 2, 4 … of
/// them, and prints what individuals take, how long the search will, in which layout it ends first, and what to submit.
/// Returns the exit code on rank 0.
[[nodiscard]] int measure_plan(const comm::Session& session, const PlanOptions& options);

/// Collective over the world. Evaluates the first individual of the search on all ranks as one worker, prints what it
/// reported and why it failed, and keeps nothing. Returns the exit code: 0 if it gave a result, else 1. Prints the plan
/// first if the options say for which nodes.
[[nodiscard]] int try_plan(comm::Session& session, const PlanOptions& options, process::Launcher launcher);

/// The nodes and their GPUs that a plan is for.
struct Question {
    std::vector<std::string> node_of_rank;
    int gpus_per_node = 0;
};
/// The nodes that the options name, else those of the allocation. Throws ConfigError if there is neither.
[[nodiscard]] Question question_of(const PlanOptions& options);

/// The checked configuration; prints what search.first found.
[[nodiscard]] config::Config load_to_plan(const PlanOptions& options);
/// Prints what is to say of a command.
void print_command_notes(const evaluate::CommandLine& line);
/// A path of the data that is not there; nothing: all are.
[[nodiscard]] std::optional<std::string> absent_data(const data::Options& options);
/// `datasets`: stand-ins where the data are not here; null: nothing is known of them.
void print_plan(const config::Config& config, const Question& question, const data::Datasets* datasets);

}  // namespace finch::app
