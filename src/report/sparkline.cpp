#include "finch/report/sparkline.hpp"

#include "finch/base/loss_order.hpp"

#include "population_of.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

namespace finch::report {

std::string sparkline(std::span<const double> values, bool has_unicode, std::size_t width) {
    static constexpr std::array<std::string_view, 8> blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static constexpr std::array<std::string_view, 8> signs{"_", ".", "-", "~", "=", "+", "*", "#"};
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const double value : values) {
        low = std::isfinite(value) ? std::min(low, value) : low;
        high = std::isfinite(value) ? std::max(high, value) : high;
    }
    const bool is_log = low > 0 && high > 20 * low;
    const auto half = [is_log](double value) { return (is_log ? std::log(value) : value) / 2; };  // no overflow
    const double range = half(high) - half(low);
    const std::size_t every = std::max<std::size_t>(1, (values.size() + width - 1) / width);
    std::string text;
    for (std::size_t i = 0; i < values.size(); i += every) {
        if (!std::isfinite(values[i])) {
            text += has_unicode ? "×" : "x";
            continue;
        }
        const double share = range > 0 ? (half(values[i]) - half(low)) / range : 0;
        text += (has_unicode ? blocks : signs).at(static_cast<std::size_t>(std::lround(share * 7)));
    }
    return text;
}

std::vector<double> best_so_far(const search::Population& population, std::size_t count) {
    Individuals finished;
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.finished_training() && !individual.is_repeat()) {
            finished.push_back(&individual);
        }
    }
    std::sort(finished.begin(), finished.end(), [](const auto* a, const auto* b) {
        return std::pair(a->finished, a->id) < std::pair(b->finished, b->id);
    });
    std::vector<double> all;
    for (const search::Individual* individual : finished) {
        if (individual->is_complete()) {
            all.push_back(all.empty() || is_better_loss(individual->loss, all.back()) ? individual->loss : all.back());
        } else if (!all.empty()) {
            all.push_back(all.back());
        }
    }
    if (all.size() <= count) {
        return all;
    }
    std::vector<double> shown;
    for (std::size_t i = 1; i <= count; ++i) {
        shown.push_back(all[i * all.size() / count - 1]);
    }
    return shown;
}

}  // namespace finch::report
