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

/// A message of a program to Finch: a line of standard output that begins with "finch ".
struct ReportLine {
    /// report: names with numbers, of an epoch. question: "finch stop?". done: "finch done ID" or "finch done", the end
    /// of an individual for a persistent program. problem: a report that cannot be read. near_miss: looks like
    /// a report, but is none.
    enum class Kind { report, question, done, problem, near_miss };
    Kind kind = Kind::problem;
    std::vector<std::pair<std::string, double>> values{};  ///< of a report, also of one behind other text (near_miss)
    std::string id{};                                      ///< of done; empty if it was not said
    std::string problem{};
    std::string text{};  ///< the line's beginning, to be quoted

    [[nodiscard]] std::optional<double> value(std::string_view name) const;
};

/// Reads "finch loss=0.31 epoch=3" and "finch {\"loss\": 0.31}". Of equal names the last counts; what is no number is
/// left out, unless it is of the curve, as are names of more than 64 bytes and what comes after 100 values. Escape
/// sequences of terminals are left out. Nothing for a line that is not for Finch.
[[nodiscard]] std::optional<ReportLine> read_report_line(const std::string& line);

/// `line` without escape sequences of terminals (colours, positions, titles).
[[nodiscard]] std::string without_escapes(const std::string& line);

}  // namespace finch::evaluate
