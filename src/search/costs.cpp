#include "finch/search/costs.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace finch::search {
namespace {

constexpr std::string_view metric_prefix = "metric.";

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(' ');
    return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Returns the value of a cost with is_of_epochs(): F1 after the best epoch, or the last value of a metric up to the
/// best epoch, or nothing.
std::optional<double> value_of_epochs(const Cost& cost, const Individual& individual) {
    if (cost.quantity == Quantity::f1) {
        const auto best = std::find_if(individual.curve.begin(), individual.curve.end(),
                                       [&](const Epoch& one) { return one.epoch == individual.best_epoch; });
        return best != individual.curve.end() ? best->validation_f1 : Individual::not_measured;
    }
    std::optional<double> value;
    std::int32_t epoch = 0;
    for (const Metric& one : individual.metrics) {
        if (one.name == cost.metric && epoch <= one.epoch && one.epoch <= individual.best_epoch) {
            epoch = one.epoch;
            value = one.value;
        }
    }
    return value;
}

std::string missing(const Cost& cost, const Individual& individual) {
    std::vector<std::string> reported;
    for (const Metric& one : individual.metrics) {
        if (std::find(reported.begin(), reported.end(), one.name) == reported.end()) {
            reported.push_back(one.name);
        }
    }
    return fmt::format("it reported no metric '{}', which search.objective or search.limits names{}; it reported {}",
                       cost.metric, did_you_mean(cost.metric, reported), reported.empty() ? "none" : join(reported));
}

double signed_value(const Cost& cost, double value) noexcept {
    return !std::isfinite(value) ? std::numeric_limits<double>::infinity() : cost.is_maximised ? -value : value;
}

}  // namespace

std::string to_text(const Cost& cost) {
    return fmt::format("{}{}{}", cost.is_maximised ? "-" : "",
                       cost.quantity == Quantity::metric ? metric_prefix : word(cost.quantity), cost.metric);
}

std::optional<Cost> parse_cost(std::string_view text) {
    Cost cost;
    cost.is_maximised = text.starts_with('-');
    text.remove_prefix(cost.is_maximised ? 1 : 0);
    if (text.starts_with(metric_prefix)) {
        cost.quantity = Quantity::metric;
        cost.metric = text.substr(metric_prefix.size());
        return cost.metric.empty() || cost.metric.size() > Metric::longest_name ? std::nullopt : std::optional(cost);
    }
    const auto quantity = enumerator<Quantity>(text);
    if (!quantity || quantity == Quantity::metric) {
        return std::nullopt;
    }
    cost.quantity = *quantity;
    return cost;
}

double cost_of(const Cost& cost, const Individual& individual) noexcept {
    constexpr auto of_epochs = [](const Cost& of, const Individual& one) {
        return of.place < most_costs ? one.objective_metrics[of.place] : Individual::not_measured;
    };
    static constexpr std::array<double (*)(const Cost&, const Individual&), words_of(Quantity{}).size()> values{
        [](const Cost&, const Individual& one) { return one.loss; },
        [](const Cost&, const Individual& one) { return one.accuracy; },
        of_epochs,
        [](const Cost&, const Individual& one) { return static_cast<double>(one.parameters); },
        [](const Cost&, const Individual& one) { return one.training_seconds; },
        [](const Cost&, const Individual& one) { return one.joules; },
        of_epochs,
    };
    return signed_value(cost, values[static_cast<std::size_t>(cost.quantity)](cost, individual));
}

Limit parse_limit(const std::string& text) {
    constexpr const char* accepted = "accepted: NAME <= NUMBER or NAME >= NUMBER, such as parameters <= 50000";
    const std::size_t sign = text.find_first_of("<>");
    if (sign == std::string::npos || text.compare(sign + 1, 1, "=") != 0) {
        throw ConfigError(fmt::format("has no <= or >=; {}", accepted));
    }
    const std::string name(trimmed(std::string_view(text).substr(0, sign)));
    const std::string_view number = trimmed(std::string_view(text).substr(sign + 2));
    const auto cost = parse_cost(name);
    if (!cost || cost->is_maximised) {
        std::vector<std::string> known = all_words<Quantity>();
        known.back() = std::string(metric_prefix) + "NAME";
        throw ConfigError(
            fmt::format("'{}' is no number of a result{}; accepted: {}", name, did_you_mean(name, known), join(known)));
    }
    const auto most = parsed<double>(number);
    if (!most || !std::isfinite(*most)) {
        throw ConfigError(fmt::format("'{}' is no number; {}", number, accepted));
    }
    Limit limit{*cost, *most, text};
    limit.cost.is_maximised = text[sign] == '>';
    limit.most = limit.cost.is_maximised ? -limit.most : limit.most;
    return limit;
}

double excess(const Limit& limit, double value) noexcept {
    constexpr double rounding = 1e-13;
    const double share = (value - limit.most) / (limit.most == 0 ? 1 : std::abs(limit.most));
    return share <= rounding ? 0 : share;
}

const Limit* broken_limit(std::span<const Limit> limits, Quantity quantity, double value) noexcept {
    const auto found = std::find_if(limits.begin(), limits.end(), [&](const Limit& limit) {
        return limit.cost.quantity == quantity && excess(limit, signed_value(limit.cost, value)) > 0;
    });
    return found != limits.end() ? &*found : nullptr;
}

std::optional<std::string> judge(std::span<const Cost> costs, std::span<const Limit> limits, Individual& individual) {
    individual.violation = 0;
    for (const Cost& cost : costs) {
        if (is_of_epochs(cost.quantity)) {
            const auto value = value_of_epochs(cost, individual);
            if (!value) {
                return missing(cost, individual);
            }
            individual.objective_metrics.at(cost.place) = *value;
        }
    }
    for (const Limit& limit : limits) {
        const bool looks_up = is_of_epochs(limit.cost.quantity);
        const auto value = looks_up ? value_of_epochs(limit.cost, individual) : std::optional<double>();
        if (looks_up && !value) {
            return missing(limit.cost, individual);
        }
        individual.violation +=
            excess(limit, looks_up ? signed_value(limit.cost, *value) : cost_of(limit.cost, individual));
    }
    return std::nullopt;
}

}  // namespace finch::search
