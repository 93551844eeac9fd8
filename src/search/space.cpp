// Operations on whole genomes: active genes, canonical form, random genomes and text.
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/search/gene.hpp"

#include <algorithm>
#include <utility>

namespace finch::search {

int Space::index_of(const std::string& name) const noexcept {
    for (std::size_t i = 0; i < genes.size(); ++i) {
        if (genes[i].name == name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

bool Space::has_conditions() const noexcept {
    return std::any_of(genes.begin(), genes.end(),
                       [](const Gene& gene) { return !gene.when.empty() || !gene.uses.empty(); });
}

bool holds(const Condition& condition, const Genome& genome, const std::vector<bool>& active) noexcept {
    const auto& values = condition.values;
    const bool has_one =
        active[condition.gene] && std::find(values.begin(), values.end(), genome[condition.gene]) != values.end();
    return has_one != condition.negated;
}

std::vector<bool> active_genes(const Space& space, const Genome& genome) {
    if (genome.size() != space.size()) {
        throw Error(fmt::format("{} values for {} genes", genome.size(), space.size()));
    }
    std::vector<bool> active(space.size(), true);
    const auto is_met = [&](const Condition& condition) { return holds(condition, genome, active); };
    // A gene's condition may name a gene that comes later. The loop therefore repeats up to the length of the longest
    // chain of conditions.
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < space.size(); ++i) {
            const auto& when = space.genes[i].when;
            if (active[i] && !std::all_of(when.begin(), when.end(), is_met)) {
                active[i] = false;
                changed = true;
            }
        }
    }
    std::vector<bool> used = active;
    const auto has_effect = [&](const std::vector<Condition>& use) {
        return std::all_of(use.begin(), use.end(), is_met);
    };
    for (std::size_t i = 0; i < space.size(); ++i) {
        const auto& uses = space.genes[i].uses;
        used[i] = active[i] && (uses.empty() || std::any_of(uses.begin(), uses.end(), has_effect));
    }
    return used;
}

Genome canonical(const Space& space, Genome genome) {
    const std::vector<bool> active = active_genes(space, genome);
    for (std::size_t i = 0; i < space.size(); ++i) {
        if (!active[i]) {
            genome[i] = first_value(space.genes[i]);
        }
    }
    return genome;
}

Genome draw_missing(const Space& space, Genome genome, std::vector<bool> chosen, RandomStream& random) {
    for (bool changed = true; changed;) {
        changed = false;
        const std::vector<bool> active = active_genes(space, genome);
        for (std::size_t i = 0; i < space.size(); ++i) {
            if (active[i] && !chosen[i]) {
                genome[i] = random_value(space.genes[i], random);
                chosen[i] = true;
                changed = true;
            }
        }
    }
    return canonical(space, std::move(genome));
}

Genome random_genome(const Space& space, RandomStream& random) {
    Genome genome;
    genome.reserve(space.size());
    for (const Gene& gene : space.genes) {
        genome.push_back(random_value(gene, random));
    }
    return canonical(space, std::move(genome));
}

std::string genome_text(const Space& space, const Genome& genome) {
    if (genome.size() != space.size()) {
        return fmt::format("{} values for {} genes", genome.size(), space.size());
    }
    const std::vector<bool> active = active_genes(space, genome);
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < space.size(); ++i) {
        if (active[i]) {
            const bool is_real = std::holds_alternative<RealGene>(space.genes[i].kind);
            parts.push_back(space.genes[i].name + " = " +
                            (is_real ? fmt::format("{:.4g}", genome[i]) : value_text(space.genes[i], genome[i])));
        }
    }
    return join(parts);
}

}  // namespace finch::search
