#include "finch/base/clock.hpp"

#include "finch/base/format.hpp"

#include <chrono>
#include <cmath>
#include <ctime>

namespace finch {

double steady_seconds() noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double unix_seconds() noexcept {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string date_and_time(double unix_seconds) {
    const auto whole = static_cast<std::time_t>(unix_seconds);
    std::tm local{};
    localtime_r(&whole, &local);
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                       local.tm_hour, local.tm_min, local.tm_sec);
}

std::string duration_text(double seconds) {
    if (!(seconds >= 0 && seconds < 1e12)) {
        return "?";
    }
    if (seconds < 10) {
        return fmt::format("{:.1f} s", seconds);
    }
    const auto whole = static_cast<long long>(std::llround(seconds));
    if (whole < 60) {
        return fmt::format("{} s", whole);
    }
    if (whole < 3600) {
        return fmt::format("{} min {:02} s", whole / 60, whole % 60);
    }
    return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace finch
