#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/train/profile.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

namespace finch::train {
namespace {

using backend::Activity;

constexpr auto words = words_of(Activity{});

Activity activity_at(std::size_t index) {
    return static_cast<Activity>(index);
}

/// Returns the share of the time that a larger number of ranks would divide among them if the global batch stayed the
/// same.
double divided_share(const GroupTimes& all) {
    return all.share(Activity::data) + all.share(Activity::forward) + all.share(Activity::backward) +
           all.share(Activity::validation);
}

/// Returns the speed-up with twice the ranks by Amdahl's law: the rest of the time does not shrink.
double most_speed_up(double divided) {
    return 1 / (1 - divided / 2);
}

/// Formats a number of samples per second.
std::string speed_text(double speed) {
    return fmt::format("{:.{}f}", speed, speed < 100 ? 2 : 0);
}

std::string megabytes(std::int64_t bytes) {
    return fmt::format("{:.2f}", static_cast<double>(bytes) / 1e6);
}

std::string activity_row(const GroupTimes& all, std::size_t index) {
    std::vector<double> seconds;
    for (const RankTimes& rank : all.ranks) {
        seconds.push_back(rank.seconds.at(index));
    }
    const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
    const Activity activity = activity_at(index);
    return fmt::format("  {:<12}{:>7.1f} %{:>11.3f}{:>11.3f}{:>11.3f}{:>6}", words.at(index), 100 * all.share(activity),
                       all.mean(activity), *least, *most, most - seconds.begin());
}

void add_layers(const ProfileReport& report, std::vector<std::string>& lines) {
    if (report.layers.empty()) {
        return;
    }
    const double forward = report.all.mean(Activity::forward);
    const double backward = report.all.mean(Activity::backward);
    const bool is_timed = std::any_of(report.layers.begin(), report.layers.end(),
                                      [](const LayerTimes& layer) { return layer.forward > 0 || layer.backward > 0; });
    lines.push_back(fmt::format("  {:<24}{:>12}{}", "layer", "MB per step",
                                is_timed ? "   forward s         %  backward s         %" : ""));
    const auto add = [&](const std::string& name, const std::string& bytes, double there, double back) {
        std::string line = fmt::format("  {:<24}{:>12}", name, bytes);
        if (is_timed) {
            line +=
                fmt::format("{:>12.3f}{:>8.1f} %{:>12.3f}{:>8.1f} %", there, forward > 0 ? 100 * there / forward : 0,
                            back, backward > 0 ? 100 * back / backward : 0);
        }
        lines.push_back(std::move(line));
    };
    double rest_forward = forward;
    double rest_backward = backward;
    double bytes = 0;
    for (const LayerTimes& layer : report.layers) {
        add(layer.name.empty() ? layer.kind : layer.kind + " " + layer.name, megabytes(layer.bytes), layer.forward,
            layer.backward);
        rest_forward -= layer.forward;
        rest_backward -= layer.backward;
        bytes += static_cast<double>(layer.bytes);
    }
    if (is_timed) {
        add("loss", "", rest_forward, rest_backward);
    }
    lines.push_back(
        fmt::format("  all layers move at least {:.2f} MB of activations and gradients per step", bytes / 1e6));
}

std::string json_times(const GroupTimes& times) {
    std::string text = fmt::format(
        "\"training_samples\": {}, \"validation_samples\": {}, "
        "\"training_samples_per_second\": {:.9g}, \"validation_samples_per_second\": {:.9g}, "
        "\"seconds\": {{",
        times.training_samples, times.validation_samples, times.training_speed(), times.validation_speed());
    for (std::size_t i = 0; i < words.size(); ++i) {
        text += fmt::format("{}\"{}\": [", i == 0 ? "" : ", ", words.at(i));
        for (std::size_t rank = 0; rank < times.ranks.size(); ++rank) {
            text += fmt::format("{}{:.9g}", rank == 0 ? "" : ", ", times.ranks[rank].seconds.at(i));
        }
        text += "]";
    }
    return text + "}";
}

}  // namespace

std::string epoch_text(const GroupTimes& times) {
    std::string text =
        fmt::format("epoch {} took {:.3f} s: training {} samples/s, validation {} samples/s;", times.epoch,
                    times.mean_whole(), speed_text(times.training_speed()), speed_text(times.validation_speed()));
    for (std::size_t i = 0; i < words.size(); ++i) {
        text += fmt::format("{} {} {:.1f} %", i == 0 ? "" : ",", words.at(i), 100 * times.share(activity_at(i)));
    }
    return text;
}

std::vector<std::string> table_text(const ProfileReport& report) {
    const GroupTimes& all = report.all;
    const auto ranks = all.ranks.size();
    const double divided = divided_share(all);
    const double between = all.share(Activity::all_reduce) + all.share(Activity::wait);
    std::vector<std::string> lines{
        fmt::format("where the time went: {:.3f} s on {}, {}", all.mean_whole(),
                    counted(static_cast<std::int64_t>(ranks), "rank"), counted(std::ssize(report.epochs), "epoch")),
        "                share     mean s    least s     most s  rank"};
    for (std::size_t i = 0; i < words.size(); ++i) {
        lines.push_back(activity_row(all, i));
    }
    lines.push_back(fmt::format("  {:<12}{:>7.1f} %{:>11.3f}", "all", 100.0, all.mean_whole()));
    lines.push_back(fmt::format("  training {} samples/s, validation {} samples/s, of all ranks",
                                speed_text(all.training_speed()), speed_text(all.validation_speed())));
    lines.push_back(fmt::format(
        "  divided among the ranks (data, forward, backward, validation): {:.1f} %; between them (all-reduce, "
        "wait): {:.1f} %; alike on each (optimizer, snapshot, other): {:.1f} %",
        100 * divided, 100 * between, 100 * (1 - divided - between)));
    lines.push_back(
        fmt::format("  twice the ranks with the same batch: at most {:.2f} times as fast", most_speed_up(divided)));
    if (ranks > 1) {
        const auto last = std::min_element(all.ranks.begin(), all.ranks.end(), [](const auto& one, const auto& other) {
            return one.waited_in_steps < other.waited_in_steps;
        });
        lines.push_back(fmt::format("  rank {} is waited for most: it waits {:.3f} s within steps itself",
                                    last - all.ranks.begin(), last->waited_in_steps));
    }
    add_layers(report, lines);
    return lines;
}

std::string json_text(const ProfileReport& report) {
    std::string text = fmt::format("{{\n  \"ranks\": {},\n  \"all\": {{{}}},\n  \"epochs\": [", report.all.ranks.size(),
                                   json_times(report.all));
    for (const GroupTimes& epoch : report.epochs) {
        text += fmt::format("{}\n    {{\"epoch\": {}, {}}}", &epoch == report.epochs.data() ? "" : ",", epoch.epoch,
                            json_times(epoch));
    }
    text += "\n  ],\n  \"layers\": [";
    for (const LayerTimes& layer : report.layers) {
        text += fmt::format(
            "{}\n    {{\"kind\": \"{}\", \"name\": \"{}\", \"forward\": {:.9g}, \"backward\": {:.9g}, \"bytes\": {}}}",
            &layer == report.layers.data() ? "" : ",", layer.kind, layer.name, layer.forward, layer.backward,
            layer.bytes);
    }
    return text + "\n  ]\n}\n";
}

}  // namespace finch::train
