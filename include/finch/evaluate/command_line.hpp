#pragma once

#include "finch/config/command.hpp"
#include "finch/search/gene.hpp"
#include "finch/search/individual.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace finch::evaluate {

/// Contents of templates, by their names in an evaluation's folder.
using TemplateTexts = std::map<std::string, std::string>;

/// Reads the templates that `objective` names. Throws ConfigError if one cannot be read.
[[nodiscard]] TemplateTexts read_templates(const config::CommandObjective& objective);
/// A text that distinguishes sets of templates; empty for none.
[[nodiscard]] std::string fingerprint(const TemplateTexts& texts);

/// The inputs of a program: arguments, variables, a line, files.
class CommandLine {
public:
    /// Arguments without a name in them that are files here stay these files, though programs run elsewhere: `here`,
    /// the folder in which Finch was started. Throws ConfigError if a name is no gene's.
    CommandLine(const config::CommandObjective& objective, const search::Space& space, std::uint64_t seed,
                const TemplateTexts& texts, std::filesystem::path here);

    struct Paths {
        std::filesystem::path run;
        std::filesystem::path folder;
        bool resumes = false;
        std::string hosts{};  ///< of the worker
        std::filesystem::path hostfile{};
        [[nodiscard]] std::filesystem::path checkpoints() const { return folder / config::checkpoints_folder; }
    };
    [[nodiscard]] std::vector<std::string> arguments(const search::Individual& individual, const Paths& paths) const;
    /// FINCH_GENE_NAME for every active gene, FINCH_ID, FINCH_SEED, FINCH_RUN, FINCH_FOLDER, FINCH_CHECKPOINT_DIR and,
    /// where it resumes, FINCH_RESUME=1.
    [[nodiscard]] std::map<std::string, std::string> variables(const search::Individual& individual,
                                                               const Paths& paths) const;
    /// The same as one JSON object and a line's end: {"id": "0.1.2", "seed": 5, "genes": {"lr": 0.1}, …}.
    [[nodiscard]] std::string json(const search::Individual& individual, const Paths& paths) const;
    /// The files of an evaluation's folder, rendered.
    [[nodiscard]] std::map<std::string, std::string> files(const search::Individual& individual,
                                                           const Paths& paths) const;
    /// Whether the command or a template names {hostfile}.
    [[nodiscard]] bool uses_hostfile() const;
    /// An argument that stays a file of the folder in which Finch was started.
    struct SharedFile {
        std::string argument;
        std::filesystem::path file;
        /// Neither the program nor executable nor, by its ending, a script or settings, and writable.
        bool may_be_written = false;
    };
    [[nodiscard]] const std::vector<SharedFile>& shared_files() const noexcept { return shared_files_; }
    /// A word that only a shell understands, if none is; empty if there is none.
    [[nodiscard]] std::string shell_word() const;
    /// The program that is started; empty if a shell is.
    [[nodiscard]] std::string program() const;

private:
    [[nodiscard]] std::map<std::string, std::string> values(const search::Individual& individual,
                                                            const Paths& paths) const;

    const config::CommandObjective& objective_;
    const search::Space& space_;
    std::uint64_t seed_;
    std::filesystem::path here_;
    std::vector<config::Template> arguments_;  ///< of a shell: its one command
    std::vector<SharedFile> shared_files_;
    std::map<std::string, config::Template> files_;
};

/// Throws ConfigError if `program` is none that could be started from any folder here: looked up in PATH, unless it
/// has a slash; a script needs its interpreter.
void check_program(const std::string& program);

/// The seed of a program: 31 random bits of the run's seed and the individual.
[[nodiscard]] std::uint32_t program_seed(std::uint64_t seed, search::Id id);

}  // namespace finch::evaluate
