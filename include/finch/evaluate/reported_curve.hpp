#pragma once

#include "finch/base/epoch.hpp"
#include "finch/base/metric.hpp"
#include "finch/evaluate/report_line.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace finch::evaluate {

/// The learning curve and the metrics that a program reports. Each report line describes one epoch.
class ReportedCurve {
public:
    /// `ranks`: the number of ranks that evaluate the individual.
    explicit ReportedCurve(std::int32_t ranks = 1) : ranks_(ranks) {}

    /// Begins an heir's curve with the epochs of its ancestors, which text() has written to `path`. add() then refuses
    /// these epochs.
    void inherit(const std::filesystem::path& path);

    /// Adds an epoch. First removes reported epochs with the same number or a larger one. A line without an epoch
    /// number is the next epoch; the first epoch is 1. Returns an error text that quotes `line`; nothing if the epoch
    /// was added.
    std::optional<std::string> add(const ReportLine& line);

    /// True if an heir reports the last inherited epoch again, as a program does that resumes. Epoch 1 with another
    /// loss is of a program that begins anew.
    [[nodiscard]] bool repeats_parent(const ReportLine& line) const;

    /// Appends the last epoch to a file, as a line that recall() reads. Returns false if the line cannot be written.
    [[nodiscard]] bool keep(const std::filesystem::path& path) const;
    /// Adds the epochs that keep() wrote to `path`; none if there is no file.
    void recall(const std::filesystem::path& path);

    /// Returns all epochs as lines that recall() reads.
    [[nodiscard]] std::string text() const;

    /// Returns the number of epochs that are not inherited.
    [[nodiscard]] std::size_t own_epochs() const noexcept { return epochs_.size() - inherited_; }
    [[nodiscard]] const std::vector<Epoch>& epochs() const noexcept { return epochs_; }
    [[nodiscard]] const std::vector<Metric>& metrics() const noexcept { return metrics_; }
    [[nodiscard]] const std::vector<double>& losses() const noexcept { return losses_; }  ///< after each epoch

private:
    [[nodiscard]] std::string line_of(const Epoch& epoch) const;

    std::int32_t ranks_;
    std::size_t inherited_ = 0;  ///< number of epochs of the ancestors
    std::vector<Epoch> epochs_;
    std::vector<Metric> metrics_;
    std::vector<double> losses_;
};

}  // namespace finch::evaluate
