#include "finch/evaluate/reported_curve.hpp"

#include "finch/base/files.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>

namespace finch::evaluate {

std::optional<std::string> ReportedCurve::add(const ReportLine& line) {
    const auto refused = [&](const std::string& why) { return fmt::format("{}, in '{}'", why, line.text); };
    if (line.kind == ReportLine::Kind::problem) {
        return refused(line.problem);
    }
    const auto value = [&](std::string_view name) {
        return line.value(name).value_or(std::numeric_limits<double>::quiet_NaN());
    };
    const auto loss = line.value("loss");
    const double next = epochs_.empty() ? 1 : static_cast<double>(epochs_.back().epoch) + 1;
    const double said = line.value("epoch").value_or(next);
    if (!loss) {
        return refused("a report needs a loss");
    }
    if (!(said >= 1 && said <= std::numeric_limits<std::int32_t>::max() && said == std::floor(said))) {
        return refused("epochs are whole numbers and count from 1");
    }
    const auto number = static_cast<std::int32_t>(said);
    if (inherited_ > 0 && number <= epochs_[inherited_ - 1].epoch) {
        return refused(
            fmt::format("epochs up to {} are those of its parent, whose checkpoint it must continue "
                        "(FINCH_PARENT_CHECKPOINT_DIR)",
                        epochs_[inherited_ - 1].epoch));
    }
    while (!epochs_.empty() && epochs_.back().epoch >= number) {
        epochs_.pop_back();
        losses_.pop_back();
    }
    while (!metrics_.empty() && metrics_.back().epoch >= number) {
        metrics_.pop_back();
    }
    for (const auto& [name, said_of_it] : line.values) {
        if (std::find(names_of_curve.begin(), names_of_curve.end(), name) == names_of_curve.end()) {
            metrics_.push_back({number, name, said_of_it});
        }
    }
    epochs_.push_back({.epoch = number,
                       .ranks = ranks_,
                       .training_loss = value("training_loss"),
                       .training_accuracy = value("training_accuracy"),
                       .validation_loss = *loss,
                       .validation_accuracy = value("accuracy"),
                       .learning_rate = value("learning_rate"),
                       .seconds = value("seconds")});
    losses_.push_back(*loss);
    return std::nullopt;
}

bool ReportedCurve::repeats_parent(const ReportLine& line) const {
    if (inherited_ == 0 || line.kind != ReportLine::Kind::report) {
        return false;
    }
    const Epoch& last = epochs_[inherited_ - 1];
    return line.value("epoch") == last.epoch && line.value("loss") &&
           (last.epoch > 1 || line.value("loss") == last.validation_loss);
}

void ReportedCurve::inherit(const std::filesystem::path& path) {
    recall(path);
    inherited_ = epochs_.size();
}

std::string ReportedCurve::line_of(const Epoch& epoch) const {
    std::string line = fmt::format(
        "ranks={} finch epoch={} loss={} accuracy={} training_loss={} training_accuracy={} learning_rate={}",
        epoch.ranks, epoch.epoch, epoch.validation_loss, epoch.validation_accuracy, epoch.training_loss,
        epoch.training_accuracy, epoch.learning_rate);
    const auto [first, last] = std::ranges::equal_range(metrics_, epoch.epoch, {}, &Metric::epoch);
    for (auto metric = first; metric != last; ++metric) {
        line += fmt::format(" {}={}", metric->name, metric->value);
    }
    return line + fmt::format(" seconds={}\n", epoch.seconds);
}

std::string ReportedCurve::text() const {
    std::string text;
    for (const Epoch& epoch : epochs_) {
        text += line_of(epoch);
    }
    return text;
}

bool ReportedCurve::keep(const std::filesystem::path& path) const {
    std::ofstream file(path, std::ios::binary | std::ios::app);
    return static_cast<bool>(file << line_of(epochs_.back()) << std::flush);
}

void ReportedCurve::recall(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file && is_there(path)) {
        throw StorageError("cannot read " + path.string());
    }
    for (std::string text; std::getline(file, text);) {
        std::int32_t ranks = ranks_;
        static_cast<void>(std::sscanf(text.c_str(), "ranks=%d ", &ranks));
        const auto line = read_report_line(text.substr(std::min(text.find("finch "), text.size())));
        const bool is_whole = line && line->kind == ReportLine::Kind::report && line->value("epoch") &&
                              line->value("seconds");  // the last line may be incomplete
        if (is_whole && !add(*line)) {
            epochs_.back().ranks = ranks;
        }
    }
}

}  // namespace finch::evaluate
