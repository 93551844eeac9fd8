#include "finch/search/gene.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

namespace finch::search {
namespace {

double random_of(const RealGene& gene, RandomStream& random) {
    const double share = random.uniform();
    const double value = gene.scale == Scale::log ? std::exp(std::lerp(std::log(gene.low), std::log(gene.high), share))
                                                  : std::lerp(gene.low, gene.high, share);
    return std::clamp(value, gene.low, gene.high);
}

double random_of(const IntGene& gene, RandomStream& random) {
    const auto values = static_cast<std::uint64_t>(gene.high) - static_cast<std::uint64_t>(gene.low) + 1;
    return static_cast<double>(gene.low + static_cast<std::int64_t>(random.below(values)));
}

double random_of(const ChoiceGene& gene, RandomStream& random) {
    return static_cast<double>(random.below(gene.options.size()));
}

bool accepts(const RealGene& gene, double value) noexcept {
    return gene.low <= value && value <= gene.high;
}

bool accepts(const IntGene& gene, double value) noexcept {
    return value == std::trunc(value) && static_cast<double>(gene.low) <= value &&
           value <= static_cast<double>(gene.high);
}

bool accepts(const ChoiceGene& gene, double value) noexcept {
    return value == std::trunc(value) && 0 <= value && value < static_cast<double>(gene.options.size());
}

std::string text_of(const RealGene&, double value) {
    return fmt::format("{}", value);
}

std::string text_of(const IntGene&, double value) {
    return fmt::format("{:.0f}", value);
}

std::string text_of(const ChoiceGene& gene, double value) {
    return accepts(gene, value) ? gene.options[static_cast<std::size_t>(value)] : fmt::format("option {}", value);
}

std::string accepted_by(const RealGene& gene) {
    return fmt::format("a number in [{}, {}]", gene.low, gene.high);
}

std::string accepted_by(const IntGene& gene) {
    return fmt::format("a whole number in [{}, {}]", gene.low, gene.high);
}

std::string accepted_by(const ChoiceGene& gene) {
    return "one of " + join(gene.options);
}

/// The number that all of `text` says, if it says one.
template <class Number>
std::optional<Number> number_in(const std::string& text) {
    Number value{};
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stopped == end ? std::optional(value) : std::nullopt;
}

std::optional<double> meaning_of(const RealGene&, const std::string& text) {
    return number_in<double>(text);
}

std::optional<double> meaning_of(const IntGene&, const std::string& text) {
    const auto value = number_in<std::int64_t>(text);
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::optional<double> meaning_of(const ChoiceGene& gene, const std::string& text) {
    const auto found = std::find(gene.options.begin(), gene.options.end(), text);
    return found != gene.options.end() ? std::optional(static_cast<double>(found - gene.options.begin()))
                                       : std::nullopt;
}

}  // namespace

int Space::index_of(const std::string& name) const noexcept {
    for (std::size_t i = 0; i < genes.size(); ++i) {
        if (genes[i].name == name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

bool Space::contains(const Genome& genome) const noexcept {
    const auto fits = [](const Gene& gene, double value) {
        return std::visit([value](const auto& kind) { return accepts(kind, value); }, gene.kind);
    };
    return std::equal(genes.begin(), genes.end(), genome.begin(), genome.end(), fits);
}

double random_value(const Gene& gene, RandomStream& random) {
    return std::visit([&random](const auto& kind) { return random_of(kind, random); }, gene.kind);
}

Genome random_genome(const Space& space, RandomStream& random) {
    Genome genome;
    genome.reserve(space.size());
    for (const Gene& gene : space.genes) {
        genome.push_back(random_value(gene, random));
    }
    return genome;
}

std::string value_text(const Gene& gene, double value) {
    return std::visit([value](const auto& kind) { return text_of(kind, value); }, gene.kind);
}

std::string genome_text(const Space& space, const Genome& genome) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < std::min(space.size(), genome.size()); ++i) {
        const bool is_real = std::holds_alternative<RealGene>(space.genes[i].kind);
        parts.push_back(space.genes[i].name + " = " +
                        (is_real ? fmt::format("{:.4g}", genome[i]) : value_text(space.genes[i], genome[i])));
    }
    return join(parts);
}

double parse_value(const Gene& gene, const std::string& text) {
    const auto read = [&](const auto& kind) {
        const std::optional<double> value = meaning_of(kind, text);
        if (!value || !accepts(kind, *value)) {
            throw ConfigError(fmt::format("gene {}: \"{}\" is not {}", gene.name, text, accepted_by(kind)));
        }
        return *value;
    };
    return std::visit(read, gene.kind);
}

}  // namespace finch::search
