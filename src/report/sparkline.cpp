#include "sparkline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace finch::report {

std::string sparkline(std::span<const double> values, std::size_t width) {
    static constexpr std::array<const char*, 8> bars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const double value : values) {
        low = std::isfinite(value) ? std::min(low, value) : low;
        high = std::isfinite(value) ? std::max(high, value) : high;
    }
    const bool is_log = low > 0 && high > 20 * low;
    const auto place = [&](double value) { return is_log ? std::log(value) : value; };
    const std::size_t every = (values.size() + width - 1) / std::max<std::size_t>(1, width);
    std::string text;
    for (std::size_t i = 0; i < values.size(); i += std::max<std::size_t>(1, every)) {
        const double range = place(high) / 2 - place(low) / 2;  // halves: the range of huge values is not infinite
        const double share = range > 0 ? (place(values[i]) / 2 - place(low) / 2) / range : 0;
        text += std::isfinite(values[i]) ? bars.at(static_cast<std::size_t>(std::lround(share * 7))) : "×";
    }
    return text;
}

}  // namespace finch::report
