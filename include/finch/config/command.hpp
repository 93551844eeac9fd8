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

/// Folders of evaluations that stay after their end.
enum class Keep { none, failed, best, all };
constexpr std::array<std::string_view, 4> words_of(Keep) {
    return {"none", "failed", "best", "all"};
}

/// Who starts the program: every rank of a worker, as torchrun does, or its leader alone.
enum class Launch { ranks, leader };
constexpr std::array<std::string_view, 2> words_of(Launch) {
    return {"ranks", "leader"};
}

/// Slurm's variables in a program's environment: as in a step that consists of its worker alone, or none.
enum class SlurmVariables { worker, none };
constexpr std::array<std::string_view, 2> words_of(SlurmVariables) {
    return {"worker", "none"};
}

/// Any program, started for each individual, that says its loss on standard output (docs/programs.md).
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
    std::int64_t epochs = 0;  ///< that a complete evaluation reports; 0: not known
    Keep keep = Keep::failed;
    std::int64_t output_bytes = 1 << 20;
};

/// In an evaluation's folder: FINCH_CHECKPOINT_DIR. (`checkpoint` is the name of a file that TensorFlow writes beside
/// its weights.)
inline constexpr std::string_view checkpoints_folder = "checkpoints";

/// Names that stand for something beside the genes, in a command and in templates.
inline constexpr std::array<std::string_view, 5> names_of_evaluation = {"id", "seed", "run", "folder", "here"};
/// The nodes of the worker; a gene of such a name takes precedence.
inline constexpr std::array<std::string_view, 2> names_of_worker = {"hosts", "hostfile"};

/// A text in which {NAME}s are replaced.
class Template {
public:
    /// doubled: `{{` and `}}` are braces, and others name something. literal: braces around no name are what they are,
    /// and `{{NAME}}` is "{NAME}": for files that are full of braces.
    enum class Braces { doubled, literal };

    /// Throws ConfigError if a name is none of `names`, or a brace is open.
    Template(const std::string& text, const std::vector<std::string>& names, Braces braces);
    /// A text in which nothing is replaced.
    [[nodiscard]] static Template plain(std::string text);
    /// Throws std::out_of_range where a value is missing.
    [[nodiscard]] std::string render(const std::map<std::string, std::string>& values) const;
    [[nodiscard]] bool uses(const std::string& name) const;
    /// Whether anything is replaced.
    [[nodiscard]] bool is_constant() const noexcept;

private:
    Template() = default;
    struct Piece {
        std::string text;
        bool is_name = false;
    };
    std::vector<Piece> pieces_;
};

/// The arguments of `command`, split at spaces outside of '…' and "…"; a backslash takes the next character as it is,
/// but within '…'. Throws ConfigError if a quote is open or nothing is there.
[[nodiscard]] std::vector<std::string> split_command(const std::string& command);

/// The first word of `command` that only a shell understands, such as "|" or "2>&1", without quotes; empty if there is
/// none.
[[nodiscard]] std::string shell_word(const std::string& command);

/// `text` as one word of a POSIX shell.
[[nodiscard]] std::string quoted_for_shell(const std::string& text);

}  // namespace finch::config
