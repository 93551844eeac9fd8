#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace finch::evaluate {

/// Names in a report that belong to an epoch's learning curve; other names are metrics.
inline constexpr std::array<std::string_view, 7> names_of_curve{
    "epoch", "loss", "accuracy", "training_loss", "training_accuracy", "learning_rate", "seconds"};

/// The name in a report that names the program's checkpoint of this epoch.
inline constexpr std::string_view name_of_checkpoint = "checkpoint";

/// A message of a program to Finch: a line of standard output that begins with "finch ".
struct ReportLine {
    /// report: names with numbers, for one epoch. question: "finch stop?". done: "finch done ID" or "finch done", with
    /// which a persistent program ends an individual. problem: a report that cannot be parsed.
    enum class Kind { report, question, done, problem };
    Kind kind = Kind::problem;
    std::vector<std::pair<std::string, double>> values{};  ///< of a report
    std::string checkpoint{};  ///< of a report: a folder in FINCH_CHECKPOINT_DIR; empty if the report names none
    std::string id{};          ///< of done; empty if the line has none
    std::string problem{};
    std::string text{};  ///< the beginning of the line, to be quoted in messages

    [[nodiscard]] std::optional<double> value(std::string_view name) const;
};

/// Parses "finch loss=0.31 epoch=3" and "finch {\"loss\": 0.31}". If a name occurs twice, its last value counts.
/// Ignores terminal escape sequences, names of more than 64 bytes, metrics after the first 100 values, and metrics that
/// are not numbers. If a value of the learning curve is not a number, the result is of kind `problem`. Returns nothing
/// for a line that is not meant for Finch.
[[nodiscard]] std::optional<ReportLine> read_report_line(const std::string& line);

/// Returns `line` without terminal escape sequences (colours, cursor positions, titles).
[[nodiscard]] std::string without_escapes(const std::string& line);

}  // namespace finch::evaluate
