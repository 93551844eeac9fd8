#pragma once

#include "finch/comm/group.hpp"
#include "finch/config/config.hpp"
#include "finch/evaluate/command_evaluator.hpp"
#include "finch/process/launcher.hpp"
#include "finch/run/startup.hpp"
#include "finch/store/run_directory.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace finch::run {

/// The inputs for starting the programs of a CommandObjective, the same on every rank.
struct PreparedPrograms {
    std::string fingerprint;  ///< of the templates
    evaluate::CommandLine line;
};

/// Returns the command line of `config` with the templates `texts`; nothing if the objective is not a program. Throws
/// ConfigError if the command or a template contains a name that is not a gene.
[[nodiscard]] std::optional<PreparedPrograms> prepare_programs(const config::Config& config,
                                                               const evaluate::TemplateTexts& texts);
/// Collective over the world. Does the same as prepare_programs(), with templates that world rank 0 reads. Throws
/// ConfigError if a template cannot be read, or if the program cannot be started on the node of any rank.
[[nodiscard]] std::optional<PreparedPrograms> prepare_programs_everywhere(const config::Config& config);

/// Remarks and warnings about a command: arguments that name existing files, which all workers share, and words that
/// have a meaning only in a shell.
struct CommandNotes {
    std::vector<std::string> remarks;
    std::vector<std::string> warnings;
};
[[nodiscard]] CommandNotes command_notes(const evaluate::CommandLine& line);

/// Collective over the world. Returns the evaluator that runs the worker's programs. Warns about devices that the
/// programs do not see or share with other workers. `number`: of the run. `config`, `prepared`, `group`, `launcher` and
/// `meter` must outlive the evaluator.
[[nodiscard]] std::unique_ptr<evaluate::CommandEvaluator> make_command_evaluator(
    const config::Config& config, const PreparedPrograms& prepared, const comm::Group& group,
    process::Launcher& launcher, const Placement& placement, int world_rank, const store::RunDirectory& directory,
    std::uint64_t number, energy::Meter* meter = nullptr);

}  // namespace finch::run
