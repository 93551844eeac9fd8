#include "simulate/tables.hpp"

#include "finch/base/format.hpp"
#include "finch/cluster/layout.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace finch::simulate {
namespace {

/// A column of the table: its name, its width, its value for a result, and the text of this value.
struct Column {
    std::string name;
    int width = 0;
    std::function<double(const Result&)> value;
    std::function<std::string(double)> text;
};

std::string short_number(double value) {
    return fmt::format("{:.4g}", value);
}

std::string size_text(double bytes) {
    constexpr double step = 1024;
    const auto [unit, size] = bytes < step * step ? std::pair("KiB", step) : std::pair("MiB", step * step);
    return fmt::format("{:.1f} {}", bytes / size, unit);
}

const config::FunctionObjective& objective_of(const config::Config& config) {
    return std::get<config::FunctionObjective>(config.objective);
}

const std::vector<Column>& columns() {
    const auto whole = [](double value) { return fmt::format("{:.0f}", value); };
    const auto tenths = [](double value) { return fmt::format("{:.1f}", value); };
    static const std::vector<Column> all{
        {"evaluations", 12, [](const Result& r) { return static_cast<double>(r.evaluations); }, whole},
        {"best", 12, [](const Result& r) { return r.best; }, short_number},
        {"busy_fraction", 14, [](const Result& r) { return r.busy_fraction; },
         [](double value) { return fmt::format("{:.4f}", value); }},
        {"hours", 10, [](const Result& r) { return r.hours; }, short_number},
        {"messages/evaluation", 20,
         [](const Result& r) {
             return static_cast<double>(r.messages) / static_cast<double>(std::max<std::int64_t>(1, r.evaluations));
         },
         tenths},
        {"memory/leader", 14, [](const Result& r) { return r.leader_bytes; }, size_text},
        {"of rank 0", 12, [](const Result& r) { return r.archivist_bytes; }, size_text},
        {"wall s", 9, [](const Result& r) { return r.wall_seconds; },
         [](double value) { return fmt::format("{:.2f}", value); }}};
    return all;
}

constexpr int label_width = 8;

std::string text_of(const search::PretendedDuration& duration) {
    if (const std::vector<double>& recorded = duration.recorded_seconds; !recorded.empty()) {
        return fmt::format("{:.4g} s (median of {} recorded: {:.4g} to {:.4g})", quantile(recorded, 0.5),
                           recorded.size(), std::ranges::min(recorded), std::ranges::max(recorded));
    }
    return fmt::format("{} s{}", duration.median_seconds,
                       duration.spread > 0 ? fmt::format(" (median; log-normal, deviation {})", duration.spread) : "");
}

}  // namespace

std::string heading(const config::Config& config, const Options& options) {
    const config::FunctionObjective& function = objective_of(config);
    std::string text = fmt::format("function {}, dimensions {}", function.function, function.dimensions);
    if (function.shift || function.rotate) {
        text += fmt::format(", {}{}{}, instance {}", function.shift ? "shifted" : "",
                            function.shift && function.rotate ? " and " : "", function.rotate ? "rotated" : "",
                            function.instance);
    }
    const int islands = config.workers.islands;
    text += fmt::format("; workers {}, islands {}\n", options.workers,
                        islands > 0 ? islands : cluster::automatic_islands(options.workers));
    text += fmt::format(
        "an evaluation lasts {}, a message {:.4g} ms; memory is estimated from the sizes of what a leader's "
        "population holds\n",
        text_of(options.duration), 1e3 * options.message_seconds);
    text += fmt::format("{:<{}}", "seed", label_width);
    for (const Column& column : columns()) {
        text += fmt::format("{:>{}}", column.name, column.width);
    }
    return text + "\n";
}

std::string row(const Result& result) {
    std::string text = fmt::format("{:<{}}", result.seed, label_width);
    for (const Column& column : columns()) {
        text += fmt::format("{:>{}}", column.text(column.value(result)), column.width);
    }
    return text + "\n";
}

std::string summary(std::span<const Result> results) {
    std::string text;
    for (const auto& [label, share] : {std::pair("quarter", 0.25), {"median", 0.5}, {"3/4", 0.75}}) {
        text += fmt::format("{:<{}}", label, label_width);
        for (const Column& column : columns()) {
            std::vector<double> values;
            std::transform(results.begin(), results.end(), std::back_inserter(values), column.value);
            text += fmt::format("{:>{}}", column.text(quantile(std::move(values), share)), column.width);
        }
        text += "\n";
    }
    return text;
}

std::string csv_heading() {
    return "function,dimensions,seed,workers,evaluations,best,busy_fraction\n";
}

std::string csv_row(const config::Config& config, const Options& options, const Result& result) {
    const config::FunctionObjective& function = objective_of(config);
    return fmt::format("{},{},{},{},{},{},{}\n", function.function, function.dimensions, result.seed, options.workers,
                       result.evaluations, result.best, result.busy_fraction);
}

double quantile(std::vector<double> values, double share) {
    std::erase_if(values, [](double value) { return std::isnan(value); });
    if (values.empty()) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    std::sort(values.begin(), values.end());
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace finch::simulate
