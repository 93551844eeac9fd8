#include "gene_effects.hpp"

#include "finch/base/format.hpp"
#include "finch/base/random.hpp"

#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace finch::report {
namespace {

using Sorted = std::span<const search::Individual* const>;

constexpr std::size_t most_individuals = 3000;  ///< that the effects are computed from
constexpr std::size_t shuffles = 200;
constexpr std::size_t chance_level = 10;  ///< the share of chance is the tenth largest of all shuffles: 95 %
constexpr std::size_t number_groups = 5;
constexpr double outer_part = 0.1;  ///< of a gene's range, next to a bound

/// The values of each gene by individual; NaN if the gene is not active there.
std::vector<std::vector<double>> active_values(const search::Space& space, Sorted individuals) {
    std::vector<std::vector<double>> values(space.size(), std::vector<double>(individuals.size(), std::nan("")));
    for (std::size_t i = 0; i < individuals.size(); ++i) {
        const search::Genome& genome = individuals[i]->genome;
        const std::vector<bool> active = search::active_genes(space, genome);
        for (std::size_t gene = 0; gene < space.size(); ++gene) {
            values[gene][i] = active[gene] ? genome[gene] : std::nan("");
        }
    }
    return values;
}

struct Groups {
    std::vector<int> of;  ///< by individual; -1: the gene is not active
    int count = 0;
};

/// One group per option, or up to five of equal size by value. Equal values share a group.
Groups groups_of(const search::Gene& gene, const std::vector<double>& values) {
    Groups groups{std::vector<int>(values.size(), -1)};
    if (const auto* const choice = std::get_if<search::ChoiceGene>(&gene.kind)) {
        groups.count = static_cast<int>(choice->options.size());
        std::transform(values.begin(), values.end(), groups.of.begin(),
                       [](double value) { return std::isnan(value) ? -1 : static_cast<int>(value); });
        return groups;
    }
    std::vector<double> sorted;
    std::copy_if(values.begin(), values.end(), std::back_inserter(sorted),
                 [](double value) { return !std::isnan(value); });
    std::sort(sorted.begin(), sorted.end());
    std::vector<double> limits;  // the largest value of each group but the last
    for (std::size_t part = 1; part < number_groups && !sorted.empty(); ++part) {
        const double limit = sorted[part * sorted.size() / number_groups];
        if (limit < sorted.back() && (limits.empty() || limit > limits.back())) {
            limits.push_back(limit);
        }
    }
    groups.count = static_cast<int>(limits.size()) + 1;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isnan(values[i])) {
            groups.of[i] = static_cast<int>(std::lower_bound(limits.begin(), limits.end(), values[i]) - limits.begin());
        }
    }
    return groups;
}

std::string short_value(const search::Gene& gene, double value) {
    return std::holds_alternative<search::RealGene>(gene.kind) ? fmt::format("{:.3g}", value)
                                                               : search::value_text(gene, value);
}

/// Active values of the best fifth, ascending.
std::vector<double> best_values(const std::vector<double>& values) {
    std::vector<double> best;
    for (std::size_t i = 0; i < (values.size() + 4) / 5; ++i) {
        if (!std::isnan(values[i])) {
            best.push_back(values[i]);
        }
    }
    std::sort(best.begin(), best.end());
    return best;
}

std::string range_text(const search::Gene& gene, const std::vector<double>& best) {
    if (best.empty()) {
        return "";
    }
    if (std::holds_alternative<search::ChoiceGene>(gene.kind)) {
        std::pair<std::ptrdiff_t, double> most{0, 0};  // how often, and the option
        for (const double value : best) {
            most = std::max(most, std::pair(std::count(best.begin(), best.end(), value), value));
        }
        return fmt::format("{} in {} of {}", search::value_text(gene, most.second), most.first, best.size());
    }
    const std::string low = short_value(gene, best[best.size() / 10]);
    const std::string high = short_value(gene, best[best.size() - 1 - best.size() / 10]);
    return low == high ? low : low + " to " + high;
}

GeneEffect::Bound bound_of(const search::Gene& gene, const std::vector<double>& best) {
    if (std::holds_alternative<search::ChoiceGene>(gene.kind) || search::is_fixed(gene) || best.size() < 5) {
        return GeneEffect::Bound::none;
    }
    // A whole number among few has a wide cell of the unit interval: its outermost value counts, whatever its width.
    const auto is_low = [&](double value) {
        return value == search::from_unit(gene, 0) || search::to_unit(gene, value) <= outer_part;
    };
    const auto is_high = [&](double value) {
        return value == search::from_unit(gene, 1) || search::to_unit(gene, value) >= 1 - outer_part;
    };
    const auto half = std::ssize(best) - std::ssize(best) / 2;
    const bool is_low_bound = std::count_if(best.begin(), best.end(), is_low) >= half;
    const bool is_high_bound = std::count_if(best.begin(), best.end(), is_high) >= half;
    return is_low_bound == is_high_bound ? GeneEffect::Bound::none
           : is_low_bound                ? GeneEffect::Bound::low
                                         : GeneEffect::Bound::high;
}

/// Evenly spaced ones, if there are more than most_individuals.
std::vector<const search::Individual*> thinned(Sorted all) {
    std::vector<const search::Individual*> some;
    const std::size_t count = std::min(all.size(), most_individuals);
    for (std::size_t i = 0; i < count; ++i) {
        some.push_back(all[i * all.size() / count]);
    }
    return some;
}

}  // namespace

std::vector<GeneEffect> gene_effects(const search::Space& space, Sorted complete) {
    if (complete.size() < fewest_for_effects) {
        return {};
    }
    const std::vector<const search::Individual*> some = thinned(complete);
    std::vector<double> losses;
    std::transform(some.begin(), some.end(), std::back_inserter(losses),
                   [](const search::Individual* individual) { return individual->loss; });
    std::vector<double> ranks = ranks_of_sorted(losses);
    std::vector<GeneEffect> effects;
    std::vector<Groups> groups;
    const std::vector<std::vector<double>> values = active_values(space, some);
    for (std::size_t gene = 0; gene < space.size(); ++gene) {
        const std::vector<double> best = best_values(values[gene]);
        groups.push_back(groups_of(space.genes[gene], values[gene]));
        effects.push_back({gene, explained_variance(ranks, groups.back().of, groups.back().count),
                           range_text(space.genes[gene], best), bound_of(space.genes[gene], best)});
    }
    std::vector<double> by_chance;
    RandomStream random(0, Purpose::resampling);
    for (std::size_t shuffle = 0; shuffle < shuffles; ++shuffle) {
        double largest = 0;
        for (std::size_t i = ranks.size(); i > 1; --i) {
            std::swap(ranks[i - 1], ranks[random.below(i)]);
        }
        for (const Groups& one : groups) {
            largest = std::max(largest, explained_variance(ranks, one.of, one.count));
        }
        by_chance.push_back(largest);
    }
    std::sort(by_chance.rbegin(), by_chance.rend());
    std::erase_if(effects, [&](const GeneEffect& effect) { return effect.share <= by_chance[chance_level - 1]; });
    std::sort(effects.begin(), effects.end(),
              [](const GeneEffect& a, const GeneEffect& b) { return a.share > b.share; });
    return effects;
}

}  // namespace finch::report
