#pragma once

#include "finch/config/command.hpp"
#include "finch/search/gene.hpp"
#include "finch/search/individual.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace finch::evaluate {

/// The texts of template files. The key is the name of the rendered file in an evaluation's folder.
using TemplateTexts = std::map<std::string, std::string>;

/// Reads the templates that `objective` names. Throws ConfigError if a template cannot be read.
[[nodiscard]] TemplateTexts read_templates(const config::CommandObjective& objective);
/// Returns a text that differs for different sets of templates; empty without templates.
[[nodiscard]] std::string fingerprint(const TemplateTexts& texts);

/// The inputs of a program: arguments, environment variables, a line of JSON, and files.
class CommandLine {
public:
    /// `here`: the folder in which Finch was started. An argument without placeholders that names a file in `here`
    /// becomes the path of that file, because programs run in other folders. Throws ConfigError if a placeholder names
    /// neither a gene nor a predefined value.
    CommandLine(const config::CommandObjective& objective, const search::Space& space, std::uint64_t seed,
                const TemplateTexts& texts, std::filesystem::path here);

    struct Paths {
        std::filesystem::path run;
        std::filesystem::path folder;
        bool resumes = false;
        std::string hosts{};  ///< the worker's nodes: "n1,n2"
        std::filesystem::path hostfile{};
        [[nodiscard]] std::filesystem::path checkpoints() const { return folder / config::checkpoints_folder; }
        [[nodiscard]] std::filesystem::path parent_checkpoint() const;  ///< of an heir
    };
    [[nodiscard]] std::vector<std::string> arguments(const search::Individual& individual, const Paths& paths) const;
    /// Returns FINCH_GENE_NAME for every active gene, FINCH_ID, FINCH_SEED, FINCH_RUN, FINCH_FOLDER, FINCH_HOSTS and
    /// FINCH_CHECKPOINT_DIR. Adds FINCH_RESUME=1 if the individual resumes, and FINCH_PARENT_CHECKPOINT_DIR and
    /// FINCH_PARENT_EPOCH if it is an heir.
    [[nodiscard]] std::map<std::string, std::string> variables(const search::Individual& individual,
                                                               const Paths& paths) const;
    /// Returns the inputs of the individual as one line of JSON: {"id": "0.1.2", "seed": 5, "genes": {"lr": 0.1}, …}.
    [[nodiscard]] std::string json(const search::Individual& individual, const Paths& paths) const;
    /// Returns the rendered templates. The keys are the names of files in the evaluation's folder.
    [[nodiscard]] std::map<std::string, std::string> files(const search::Individual& individual,
                                                           const Paths& paths) const;
    /// True if the command or a template contains {NAME}.
    [[nodiscard]] bool uses(const std::string& name) const;
    /// An argument that was replaced by the path of a file in the folder where Finch was started.
    struct SharedFile {
        std::string argument;
        std::filesystem::path file;
        /// True if the file is writable and is not the program, not executable, and not a script or settings file by
        /// its extension.
        bool may_be_written = false;
    };
    [[nodiscard]] const std::vector<SharedFile>& shared_files() const noexcept { return shared_files_; }
    /// Returns a word of the command that only a shell understands; empty if there is none or a shell runs the command.
    [[nodiscard]] std::string shell_word() const;
    /// Returns an argument that names no file although it should: a script by its extension, or a path that begins with
    /// ~/, which only a shell expands. Returns an empty text if there is none or if a shell runs the command.
    [[nodiscard]] std::string absent_script() const;
    /// Returns warnings about placeholders of genes as other languages write them: {{lr}}, ${lr}, %(lr)s.
    [[nodiscard]] std::vector<std::string> foreign_placeholders() const;
    /// Returns the program to start; empty if a shell runs the command or if the program's name contains a placeholder.
    [[nodiscard]] std::string program() const;

private:
    [[nodiscard]] std::map<std::string, std::string> values(const search::Individual& individual,
                                                            const Paths& paths) const;

    const config::CommandObjective& objective_;
    const search::Space& space_;
    std::uint64_t seed_;
    std::filesystem::path here_;
    std::vector<config::Template> arguments_;  ///< with a shell: one entry, the whole command
    std::vector<SharedFile> shared_files_;
    std::map<std::string, config::Template> files_;
};

/// Throws ConfigError if `program` cannot be started on this node. A name without a slash must be found in an absolute
/// folder of PATH, because programs start in folders of their own. If `program` is a script, its interpreter must exist
/// too.
void check_program(const std::string& program);

/// Returns the seed of a program: 31 random bits that depend on the run's seed and the individual's id.
[[nodiscard]] std::uint32_t program_seed(std::uint64_t seed, search::Id id);

}  // namespace finch::evaluate
