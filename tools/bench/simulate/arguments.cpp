#include "simulate/arguments.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>

namespace finch::simulate {
namespace {

constexpr double longest_seconds = 1e9;
constexpr double widest_spread = 10;
constexpr std::uint64_t most_seeds = 100000;

/// Returns `text` as a number, or nothing if any part of `text` is not part of the number.
template <class Number>
std::optional<Number> number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    return is_whole ? std::optional(value) : std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
    std::vector<std::string_view> parts;
    for (std::size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
        parts.push_back(text.substr(0, at));
        text.remove_prefix(at + separator.size());
    }
    parts.push_back(text);
    return parts;
}

}  // namespace

std::vector<double> recorded_seconds(const search::Population& population) {
    std::vector<double> all;
    for (const auto& [id, one] : population.individuals()) {
        const bool in_one_start = one.attempt.worker >= 0 && one.attempt.restart == id.restart();
        const double seconds = in_one_start ? one.finished - one.started : one.training_seconds;
        if (one.finished_training() && !one.is_reused() && one.started > 0 && seconds > 0) {
            all.push_back(seconds);
        }
    }
    return all;
}

search::PretendedDuration parse_durations(
    const std::string& text, const std::function<std::vector<double>(const std::string& run)>& seconds_of) {
    constexpr std::string_view recorded = "recorded:";
    if (text.starts_with(recorded) && text.size() > recorded.size()) {
        const std::string run = text.substr(recorded.size());
        search::PretendedDuration duration{.recorded_seconds = seconds_of(run)};
        if (duration.recorded_seconds.empty()) {
            throw ConfigError(fmt::format("--durations: {}: no evaluation of this run took any time", run));
        }
        return duration;
    }
    const auto kind = split(text, ":");
    const auto values = kind.size() == 2 ? split(kind[1], ",") : std::vector<std::string_view>();
    const bool is_constant = kind[0] == "constant" && values.size() == 1;
    const bool is_lognormal = kind[0] == "lognormal" && values.size() == 2;
    const double seconds = is_constant || is_lognormal ? number<double>(values[0]).value_or(NAN) : NAN;
    const double spread = is_lognormal ? number<double>(values[1]).value_or(NAN) : 0;
    if (!(seconds > 0 && seconds <= longest_seconds && spread >= 0 && spread <= widest_spread)) {
        throw ConfigError(
            fmt::format("--durations: '{}'; accepted: lognormal:MEDIAN,SPREAD, as lognormal:60,0.5, or "
                        "constant:SECONDS, with seconds above 0 up to {} and a spread (of the logarithm) from 0 to {}; "
                        "or recorded:RUN, a run directory",
                        text, longest_seconds, widest_spread));
    }
    return {seconds, spread};
}

std::vector<std::uint64_t> parse_seeds(const std::string& text) {
    const auto refuse = [&text] {
        return ConfigError(
            fmt::format("--seeds: '{}'; accepted: a number, FIRST..LAST or a list, with whole numbers from 0 on, the "
                        "first not above the last, {} seeds at most: 1..10",
                        text, most_seeds));
    };
    std::vector<std::uint64_t> seeds;
    for (const std::string_view part : split(text, ",")) {
        const auto ends = split(part, "..");
        const auto first = number<std::uint64_t>(ends.front());
        const auto last = number<std::uint64_t>(ends.back());
        if (ends.size() > 2 || !first || !last || *first > *last || *last - *first >= most_seeds - seeds.size()) {
            throw refuse();
        }
        for (std::uint64_t i = 0; i <= *last - *first; ++i) {
            seeds.push_back(*first + i);
        }
    }
    return seeds;
}

}  // namespace finch::simulate
