#pragma once

#include "finch/search/individual.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace finch::search {

/// A number of a result. `f1`: the macro F1 of a network. `metric`: a number that a program reports by name.
enum class Quantity : std::uint8_t { loss, accuracy, f1, parameters, seconds, joules, metric };
constexpr std::array<std::string_view, 7> words_of(Quantity) {
    return {"loss", "accuracy", "f1", "parameters", "seconds", "joules", "metric"};
}
/// Returns whether the value of `quantity` is looked up in the epochs of a result: Individual::objective_metrics holds
/// it if it is an objective.
[[nodiscard]] constexpr bool is_of_epochs(Quantity quantity) noexcept {
    return quantity == Quantity::f1 || quantity == Quantity::metric;
}

/// A quantity that a search minimises in addition to the loss, or limits. With `is_maximised`, the value is negated.
struct Cost {
    Quantity quantity = Quantity::parameters;
    std::string metric{};  ///< name of the metric; empty for other quantities
    bool is_maximised = false;
    std::size_t place = 0;  ///< if is_of_epochs(): its index in Individual::objective_metrics
    bool operator==(const Cost&) const = default;
    /// Returns the cost without its sign.
    [[nodiscard]] Cost as_reported() const { return {quantity, metric, false, place}; }
};

/// Returns the name in a configuration: "joules", "metric.latency", "-accuracy".
[[nodiscard]] std::string to_text(const Cost& cost);
/// Returns the cost with this name, or nothing.
[[nodiscard]] std::optional<Cost> parse_cost(std::string_view text);

/// Returns the cost of a result; smaller is better. Returns infinity for a value that is not known.
[[nodiscard]] double cost_of(const Cost& cost, const Individual& individual) noexcept;

/// A condition on results, `cost <= most`.
struct Limit {
    Cost cost;
    double most = 0;
    std::string text{};  ///< as in the configuration: "metric.latency <= 5"
};

/// Parses "NAME <= NUMBER" or "NAME >= NUMBER". Throws ConfigError: what is wrong, and what is accepted.
[[nodiscard]] Limit parse_limit(const std::string& text);

/// Returns by how much `value` exceeds a limit, as a share of the bound (1, if it is 0); 0 up to a rounding error.
[[nodiscard]] double excess(const Limit& limit, double value) noexcept;

/// Returns the first limit of `quantity` that `value` breaks, or null.
[[nodiscard]] const Limit* broken_limit(std::span<const Limit> limits, Quantity quantity, double value) noexcept;

/// Computes the members of a finished `individual` that depend on the configuration: the objective_metrics, and the
/// violation, the sum of the excesses of all limits (the constraint handling of Deb 2000). The value of a metric is the
/// last one up to the best epoch; that of f1 is the best epoch's. Returns the problem if a metric was not reported.
std::optional<std::string> judge(std::span<const Cost> costs, std::span<const Limit> limits, Individual& individual);

}  // namespace finch::search
