#include "finch/energy/energy.hpp"

#include "finch/base/format.hpp"

#include <cmath>

namespace finch::energy {
namespace {

/// "0.278", "2.78", "27.8", "278", "2778".
std::string three_digits(double value) {
    return fmt::format("{:.{}f}", value, value < 0.9995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

}  // namespace

Energy operator+(const Energy& a, const Energy& b) noexcept {
    if (!a.is_known() || !b.is_known()) {
        return {};
    }
    if (a.source == Source::none || b.source == Source::none) {
        return {a.joules + b.joules, a.source == Source::none ? b.source : a.source};
    }
    return {a.joules + b.joules, a.source == b.source ? a.source : Source::mixed};
}

std::string joules_text(double joules) {
    constexpr double of_kilowatt_hour = 3.6e6;
    if (!std::isfinite(joules)) {
        return "-";
    }
    return joules < 1e3   ? three_digits(joules) + " J"
           : joules < 1e6 ? three_digits(joules / 1e3) + " kJ"
                          : three_digits(joules / of_kilowatt_hour) + " kWh";
}

}  // namespace finch::energy
