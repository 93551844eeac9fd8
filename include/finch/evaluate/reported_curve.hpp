#pragma once

#include "finch/base/epoch.hpp"
#include "finch/base/metric.hpp"
#include "finch/evaluate/report_line.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace finch::evaluate {

/// The learning curve that a program reports, an epoch a line, and its other metrics.
class ReportedCurve {
public:
    /// `ranks`: that evaluate it.
    explicit ReportedCurve(std::int32_t ranks = 1) : ranks_(ranks) {}

    /// Adds an epoch, in place of that epoch and later ones if they were reported before. Without a number
    /// the epoch is the one after the last, 1 at first. Returns what is wrong with `line`, which it quotes; nothing if
    /// it was added.
    std::optional<std::string> add(const ReportLine& line);

    /// Whether a report says what is known of one of the epochs: that epoch, or that loss.
    [[nodiscard]] bool has(const ReportLine& line) const;

    /// Appends the last epoch to a file, as a line that recall() reads. False if it cannot be written.
    [[nodiscard]] bool keep(const std::filesystem::path& path) const;
    /// Adds what was kept there, if anything was.
    void recall(const std::filesystem::path& path);

    [[nodiscard]] const std::vector<Epoch>& epochs() const noexcept { return epochs_; }
    [[nodiscard]] const std::vector<Metric>& metrics() const noexcept { return metrics_; }
    [[nodiscard]] const std::vector<double>& losses() const noexcept { return losses_; }  ///< after each epoch

private:
    std::int32_t ranks_;
    std::vector<Epoch> epochs_;
    std::vector<Metric> metrics_;
    std::vector<double> losses_;
};

}  // namespace finch::evaluate
