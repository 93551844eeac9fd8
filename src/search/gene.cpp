// Operations on the values of one gene: counting, drawing, moving, encoding and writing them.
#include "finch/search/gene.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace finch::search {
namespace {

/// Returns `x` clamped to [low, high], or `low` if `x` is NaN.
double clamped(double x, double low, double high) {
    return x > low ? std::min(x, high) : low;
}

// The values of a discrete gene are numbered from 0. count_of() returns how many values there are, value_at() the k-th
// value, and nearest() the number of the value that is nearest to x.

std::uint64_t count_of(const RealGene& gene) {
    constexpr double rounding = 1e-6;  // tolerance of the quotient
    return static_cast<std::uint64_t>(std::floor((gene.high - gene.low) / gene.step + rounding)) + 1;
}

std::uint64_t count_of(const IntGene& gene) {
    return (static_cast<std::uint64_t>(gene.high) - static_cast<std::uint64_t>(gene.low)) /
               static_cast<std::uint64_t>(gene.step) +
           1;
}

std::uint64_t count_of(const ChoiceGene& gene) {
    return gene.options.size();
}

/// Rounds the value to the last of 15 digits of the larger bound, so that -0.7 + 10 · 0.07 gives 0, and to 15 digits of
/// its own, so that 3 · 0.1 gives 0.3.
double value_at(const RealGene& gene, std::uint64_t k) {
    const double exact = gene.low + static_cast<double>(k) * gene.step;
    const double largest = std::max(std::abs(gene.low), std::abs(gene.high));
    const double power = std::pow(10.0, 14 - std::floor(std::log10(largest)));
    const double rounded = std::round(exact * power) / power + 0.0;  // + 0.0: no negative zero
    const auto value = parsed<double>(fmt::format("{:.15g}", std::isfinite(rounded) ? rounded : exact));
    return k == 0 ? gene.low : clamped(value.value_or(exact), gene.low, gene.high);
}

double value_at(const IntGene& gene, std::uint64_t k) {
    return static_cast<double>(gene.low + static_cast<std::int64_t>(k) * gene.step);
}

double value_at(const ChoiceGene&, std::uint64_t k) {
    return static_cast<double>(k);
}

/// The bounds and the step of a gene as numbers; of a choice, those of the indices of its options.
struct Range {
    double low;
    double high;
    double step;
};
Range range_of(const ChoiceGene& gene) {
    return {0, static_cast<double>(gene.options.size() - 1), 1};
}
template <class Kind>
Range range_of(const Kind& gene) {
    return {static_cast<double>(gene.low), static_cast<double>(gene.high), static_cast<double>(gene.step)};
}

template <class Kind>
std::uint64_t nearest(const Kind& gene, double x) {
    const auto last = static_cast<double>(count_of(gene) - 1);
    return static_cast<std::uint64_t>(clamped(std::round((x - range_of(gene).low) / range_of(gene).step), 0, last));
}

/// Uses integer arithmetic for an integer `x`: doubles cannot number the values of a range that is larger than 2^53.
std::uint64_t nearest(const IntGene& gene, double x) {
    if (x != std::round(x) || !(x >= range_of(gene).low && x <= range_of(gene).high)) {
        return nearest<IntGene>(gene, x);
    }
    const auto step = static_cast<std::uint64_t>(gene.step);
    const std::uint64_t above =
        static_cast<std::uint64_t>(static_cast<std::int64_t>(x)) - static_cast<std::uint64_t>(gene.low);
    return std::min((above + step / 2) / step, count_of(gene) - 1);
}

bool is_continuous(const RealGene& gene) {
    return gene.step <= 0;
}
template <class Kind>
bool is_continuous(const Kind&) {
    return false;
}

bool is_log(const ChoiceGene&) {
    return false;
}
template <class Kind>
bool is_log(const Kind& gene) {
    return gene.scale == Scale::log;
}

template <class Kind>
double snapped(const Kind& gene, double x) {
    return is_continuous(gene) ? clamped(x, range_of(gene).low, range_of(gene).high) : value_at(gene, nearest(gene, x));
}
double snapped(const IntGene& gene, double x) {
    // If the step is 1, values are not numbered, because the number would not be exact in a range that is larger than
    // 2^53.
    return gene.step == 1 ? clamped(std::round(x), range_of(gene).low, range_of(gene).high)
                          : value_at(gene, nearest(gene, x));
}

/// The interval of real numbers that round to values of an integer gene with Scale::log. The interval begins half a
/// step below the first value (but never at 0) and ends half a step above the last value.
struct Edges {
    double low;
    double high;
};
Edges edges_of(const IntGene& gene) {
    const double half = static_cast<double>(gene.step) / 2;
    const auto low = static_cast<double>(gene.low);
    return {std::max(low - half, low / 2), value_at(gene, count_of(gene) - 1) + half};
}

template <class Kind>
double from(const Kind& gene, double u) {
    const std::uint64_t count = count_of(gene);
    const double place = std::floor(u * static_cast<double>(count));
    return value_at(gene, std::min(static_cast<std::uint64_t>(place), count - 1));
}

double from(const RealGene& gene, double u) {
    if (!is_continuous(gene)) {
        return from<RealGene>(gene, u);
    }
    const double value = gene.scale == Scale::log ? std::exp(std::lerp(std::log(gene.low), std::log(gene.high), u))
                                                  : std::lerp(gene.low, gene.high, u);
    return clamped(value, gene.low, gene.high);
}
double from(const IntGene& gene, double u) {
    if (gene.scale == Scale::linear) {
        return from<IntGene>(gene, u);
    }
    const Edges edges = edges_of(gene);
    return snapped(gene, std::exp(std::lerp(std::log(edges.low), std::log(edges.high), u)));
}

template <class Kind>
double to(const Kind& gene, double value) {
    return (static_cast<double>(nearest(gene, value)) + 0.5) / static_cast<double>(count_of(gene));
}

double to(const RealGene& gene, double value) {
    if (!is_continuous(gene)) {
        return to<RealGene>(gene, value);
    }
    if (!(gene.low < gene.high)) {
        return 0.5;
    }
    const double u = gene.scale == Scale::log
                         ? (std::log(value) - std::log(gene.low)) / (std::log(gene.high) - std::log(gene.low))
                         : (value - gene.low) / (gene.high - gene.low);
    return clamped(u, 0, 1);
}
double to(const IntGene& gene, double value) {
    if (gene.scale == Scale::linear || count_of(gene) == 1) {
        return to<IntGene>(gene, value);
    }
    const Edges edges = edges_of(gene);
    return clamped(std::log(value / edges.low) / std::log(edges.high / edges.low), 0, 1);
}

template <class Kind>
double random_of(const Kind& gene, RandomStream& random) {
    return is_continuous(gene) || is_log(gene) ? from(gene, random.uniform())
                                               : value_at(gene, random.below(count_of(gene)));
}

bool accepts(const RealGene& gene, double value) {
    return gene.low <= value && value <= gene.high && (is_continuous(gene) || value == snapped(gene, value));
}
bool accepts(const IntGene& gene, double value) {
    return static_cast<double>(gene.low) <= value && value <= static_cast<double>(gene.high) &&
           value == snapped(gene, value);
}
bool accepts(const ChoiceGene& gene, double value) {
    return value == std::trunc(value) && 0 <= value && value < static_cast<double>(gene.options.size());
}

std::string text_of(const RealGene&, double value) {
    return number_text(value);
}
std::string text_of(const IntGene&, double value) {
    return fmt::format("{:.0f}", value);
}
std::string text_of(const ChoiceGene& gene, double value) {
    return accepts(gene, value) ? gene.options[static_cast<std::size_t>(value)] : fmt::format("option {}", value);
}

std::string accepted_by(const RealGene& gene) {
    return fmt::format("a number in [{}, {}]{}", gene.low, gene.high,
                       is_continuous(gene) ? "" : fmt::format(" in steps of {}", gene.step));
}
std::string accepted_by(const IntGene& gene) {
    return fmt::format("a whole number in [{}, {}]{}", gene.low, gene.high,
                       gene.step == 1 ? "" : fmt::format(" in steps of {}", gene.step));
}
std::string accepted_by(const ChoiceGene& gene) {
    return "one of " + join(gene.options);
}

std::optional<double> meaning_of(const RealGene& gene, const std::string& text) {
    const auto value = parsed<double>(text);
    if (!value || is_continuous(gene)) {
        return value;
    }
    constexpr double rounding = 1e-9;  // as a fraction of a step
    const double near = snapped(gene, *value);
    return std::abs(near - *value) <= rounding * gene.step ? near : value;
}
std::optional<double> meaning_of(const IntGene&, const std::string& text) {
    const auto value = parsed<std::int64_t>(text);
    const auto in_genome = static_cast<double>(value.value_or(0));
    const bool is_exact = value && fmt::format("{:.0f}", in_genome) == text;  // refuses 2^53 + 1 and 007
    return is_exact ? std::optional(in_genome) : std::nullopt;
}
std::optional<double> meaning_of(const ChoiceGene& gene, const std::string& text) {
    const auto found = std::find(gene.options.begin(), gene.options.end(), text);
    return found != gene.options.end() ? std::optional(static_cast<double>(found - gene.options.begin()))
                                       : std::nullopt;
}

template <class Kind>
double moved(const Kind& gene, double value, double ranges) {
    const auto [low, high, step] = range_of(gene);
    const double to =
        is_log(gene) ? value * std::exp(ranges * (std::log(high) - std::log(low))) : value + ranges * (high - low);
    const double result = snapped(gene, to);
    if (is_continuous(gene) || result != value || ranges == 0) {
        return result;
    }
    return snapped(gene, value + (ranges > 0 ? step : -step));
}

}  // namespace

bool is_fixed(const Gene& gene) noexcept {
    const auto* const real = std::get_if<RealGene>(&gene.kind);
    return real != nullptr && is_continuous(*real) ? !(real->low < real->high) : value_count(gene) == 1;
}

std::optional<std::uint64_t> value_count(const Gene& gene) noexcept {
    return std::visit(
        [](const auto& kind) { return is_continuous(kind) ? std::nullopt : std::optional(count_of(kind)); }, gene.kind);
}

double first_value(const Gene& gene) noexcept {
    return std::visit([](const auto& kind) { return range_of(kind).low; }, gene.kind);
}

double snap(const Gene& gene, double x) noexcept {
    return std::visit([x](const auto& kind) { return snapped(kind, x); }, gene.kind);
}

double to_unit(const Gene& gene, double value) noexcept {
    return std::visit([value](const auto& kind) { return to(kind, value); }, gene.kind);
}

double from_unit(const Gene& gene, double u) noexcept {
    return std::visit([u = clamped(u, 0, 1)](const auto& kind) { return from(kind, u); }, gene.kind);
}

double random_value(const Gene& gene, RandomStream& random) {
    return std::visit([&random](const auto& kind) { return random_of(kind, random); }, gene.kind);
}

double mutate_value(const Gene& gene, double value, RandomStream& random) {
    const auto* const choice = std::get_if<ChoiceGene>(&gene.kind);
    if (choice == nullptr || !choice->ordered || choice->options.size() < 2 || random.uniform() < 0.5) {
        return random_value(gene, random);
    }
    const auto last = static_cast<double>(choice->options.size() - 1);
    const bool up = value <= 0 || (value < last && random.uniform() < 0.5);
    return snapped(*choice, up ? value + 1 : value - 1);
}

double move_value(const Gene& gene, double value, double ranges) noexcept {
    const auto* const choice = std::get_if<ChoiceGene>(&gene.kind);
    if (choice != nullptr && !choice->ordered) {
        return value;
    }
    return std::visit([=](const auto& kind) { return moved(kind, value, ranges); }, gene.kind);
}

std::string value_text(const Gene& gene, double value) {
    return std::visit([value](const auto& kind) { return text_of(kind, value); }, gene.kind);
}

std::optional<double> value_in(const Gene& gene, const std::string& text) {
    const auto read = [&](const auto& kind) {
        const std::optional<double> value = meaning_of(kind, text);
        return value && accepts(kind, *value) ? value : std::nullopt;
    };
    return std::visit(read, gene.kind);
}

double parse_value(const Gene& gene, const std::string& text) {
    const std::optional<double> value = value_in(gene, text);
    if (!value) {
        throw ConfigError(fmt::format("gene {}: \"{}\" is not {}", gene.name, text, accepted_values(gene)));
    }
    return *value;
}

std::string accepted_values(const Gene& gene) {
    if (is_fixed(gene)) {
        return value_text(gene, first_value(gene)) + ", its only value";
    }
    return std::visit([](const auto& kind) { return accepted_by(kind); }, gene.kind);
}

bool Space::contains(const Genome& genome) const noexcept {
    const auto fits = [](const Gene& gene, double value) {
        return std::visit([value](const auto& kind) { return accepts(kind, value); }, gene.kind);
    };
    return std::equal(genes.begin(), genes.end(), genome.begin(), genome.end(), fits);
}

}  // namespace finch::search
