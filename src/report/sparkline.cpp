#include "finch/report/sparkline.hpp"

#include "finch/base/loss_order.hpp"

#include "population_of.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace finch::report {

std::string sparkline(std::span<const double> values, bool has_unicode) {
    static constexpr std::array<std::string_view, 8> blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static constexpr std::array<std::string_view, 8> signs{"_", ".", "-", "~", "=", "+", "*", "#"};
    if (values.empty()) {
        return "";
    }
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const bool is_log = *low > 0;
    const auto height = [is_log](double value) { return is_log ? std::log(value) : value; };
    const double range = height(*high) - height(*low);
    std::string text;
    for (const double value : values) {
        const double share = range > 0 ? (height(value) - height(*low)) / range : 0;
        const auto level = static_cast<std::size_t>(std::lround(share * static_cast<double>(blocks.size() - 1)));
        text += has_unicode ? blocks.at(level) : signs.at(level);
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
