#include "finch/cluster/time_limit.hpp"

#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/cluster/environment.hpp"

#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <vector>

namespace finch::cluster {
namespace {

constexpr double minute = 60;
constexpr double hour = 3600;
constexpr double day = 86400;

/// Returns the numbers between colons; empty if any part is not a number.
std::vector<double> numbers(const std::string& text) {
    std::vector<double> result;
    std::istringstream parts(text + ":");
    for (std::string part; std::getline(parts, part, ':');) {
        const auto number = parsed<std::uint32_t>(part);
        if (!number) {
            return {};
        }
        result.push_back(*number);
    }
    return result;
}

double sum(const std::vector<double>& counts, const std::vector<double>& units) {
    double seconds = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        seconds += counts[i] * units[i];
    }
    return seconds;
}

}  // namespace

std::optional<double> parse_time_limit(const std::string& text) {
    const auto dash = text.find('-');
    const bool has_days = dash != std::string::npos;
    const std::vector<double> days = has_days ? numbers(text.substr(0, dash)) : std::vector<double>{0};
    const std::vector<double> parts = numbers(has_days ? text.substr(dash + 1) : text);
    if (days.size() != 1 || parts.empty() || parts.size() > 3) {
        return std::nullopt;
    }
    const bool begins_with_hours = has_days || parts.size() == 3;
    const double seconds =
        days.front() * day + sum(parts, begins_with_hours ? std::vector{hour, minute, 1.0} : std::vector{minute, 1.0});
    return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

double extended_end_time() {
    double end = 0;
    std::ifstream(Environment::of_this_process().text("FINCH_DEADLINE_FILE").value_or("")) >> end;
    return end;
}

std::string time_limit_text(double seconds) {
    const auto minutes = std::llround(std::ceil(seconds / minute));
    return fmt::format("{}:{:02}:00", minutes / 60, minutes % 60);
}

}  // namespace finch::cluster
