#pragma once

#include "finch/comm/group.hpp"
#include "finch/config/config.hpp"
#include "finch/evaluate/programs.hpp"
#include "finch/process/launcher.hpp"
#include "finch/run/startup.hpp"
#include "finch/store/run_directory.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace finch::run {

/// Data with which the programs of a CommandObjective are started, the same on every rank.
struct PreparedPrograms {
    std::string fingerprint;  ///< of the templates
    evaluate::CommandLine line;
};

/// The command line of `config`, and its templates, read here. Throws ConfigError if they name no gene, or a
/// template cannot be read. Nothing if the objective is no program.
[[nodiscard]] std::optional<PreparedPrograms> prepare_programs(const config::Config& config,
                                                               const evaluate::TemplateTexts& texts);
/// Collective over the world: the same with the templates that world rank 0 reads; the program can be started on every
/// rank's node. Throws ConfigError.
[[nodiscard]] std::optional<PreparedPrograms> prepare_programs_everywhere(const config::Config& config);

/// Remarks about a command: arguments that are files here, one for all workers, and words of a shell.
struct CommandNotes {
    std::vector<std::string> remarks;
    std::vector<std::string> warnings;
};
[[nodiscard]] CommandNotes command_notes(const evaluate::CommandLine& line);

/// Collective over the world. The worker's programs, on this rank; warns of devices that they do not see. `config`,
/// `prepared`, `group` and `launcher` outlive it.
[[nodiscard]] std::unique_ptr<evaluate::Programs> make_programs(const config::Config& config,
                                                                const PreparedPrograms& prepared,
                                                                const comm::Group& group, process::Launcher& launcher,
                                                                const Placement& placement, int world_rank,
                                                                const store::RunDirectory& directory,
                                                                energy::Meter* meter = nullptr);

}  // namespace finch::run
