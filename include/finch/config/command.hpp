#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finch::config {

/// The evaluations that keep their folder after they end.
enum class Keep { none, failed, best, all };
constexpr std::array<std::string_view, 4> words_of(Keep) {
    return {"none", "failed", "best", "all"};
}

/// The processes that start the program: every rank of a worker, as torchrun does, or only the worker's leader.
enum class Launch { ranks, leader };
constexpr std::array<std::string_view, 2> words_of(Launch) {
    return {"ranks", "leader"};
}

/// The environment variables of Slurm that a program receives. worker: as if the worker alone formed a Slurm step.
/// none: only SLURM_CONF.
enum class SlurmVariables { worker, none };
constexpr std::array<std::string_view, 2> words_of(SlurmVariables) {
    return {"worker", "none"};
}

/// An objective function that an external program computes. Finch starts the program for each individual and reads the
/// loss from the program's standard output (docs/programs.md).
struct CommandObjective {
    std::string command;
    bool shell = false;
    Launch launch = Launch::ranks;
    SlurmVariables slurm = SlurmVariables::worker;
    bool persistent = false;
    bool interactive = false;
    std::map<std::string, std::string> files;  ///< path in the evaluation's folder: path of its template
    std::optional<double> timeout_seconds;
    double grace_seconds = 60;
    std::int64_t epochs = 0;  ///< number of epochs that a complete evaluation reports; 0: not known
    Keep keep = Keep::failed;
    std::int64_t output_bytes = 1 << 20;
};

/// The folder of FINCH_CHECKPOINT_DIR, in an evaluation's folder. (TensorFlow writes a file `checkpoint` next to its
/// weights, so Finch's folder has another name.)
inline constexpr std::string_view checkpoints_folder = "checkpoints";

/// An heir's copy of its parent's state is the folder SEQUENCE.parent, next to its own folder SEQUENCE. Its subfolder
/// `checkpoint` is FINCH_PARENT_CHECKPOINT_DIR.
inline constexpr std::string_view parent_suffix = "parent";
inline constexpr std::string_view parent_checkpoint = "checkpoint";

/// Placeholders in commands and templates that do not name genes.
inline constexpr std::array<std::string_view, 5> names_of_evaluation = {"id", "seed", "run", "folder", "here"};
/// Placeholders for the nodes of the worker. If a gene has the same name, the placeholder stands for the gene.
inline constexpr std::array<std::string_view, 2> names_of_worker = {"hosts", "hostfile"};

/// A text with placeholders {NAME}. render() replaces them by values.
class Template {
public:
    /// Treatment of braces. doubled: `{{` and `}}` give single braces, and a single brace must enclose a name. literal:
    /// braces that enclose no name stay as they are, and `{{NAME}}` gives "{NAME}". Choose `literal` for files with
    /// many braces.
    enum class Braces { doubled, literal };

    /// Throws ConfigError if a placeholder is not in `names`, or if, with `doubled`, a single brace encloses no name.
    Template(const std::string& text, const std::vector<std::string>& names, Braces braces);
    /// Returns a template without placeholders.
    [[nodiscard]] static Template plain(std::string text);
    /// Throws std::out_of_range if `values` lacks a placeholder.
    [[nodiscard]] std::string render(const std::map<std::string, std::string>& values) const;
    [[nodiscard]] bool uses(const std::string& name) const;
    /// True if the text has no placeholders.
    [[nodiscard]] bool is_constant() const noexcept;

private:
    Template() = default;
    struct Piece {
        std::string text;
        bool is_name = false;
    };
    std::vector<Piece> pieces_;
};

/// Splits `command` into arguments at white space outside of '…' and "…". A backslash quotes the next character, except
/// within '…'. Throws ConfigError if a quote is not closed or the command is empty.
[[nodiscard]] std::vector<std::string> split_command(const std::string& command);

/// Returns the first unquoted word of `command` that only a shell understands, such as "|" or "2>&1"; empty if there is
/// none.
[[nodiscard]] std::string shell_word(const std::string& command);

}  // namespace finch::config
