#include "genes.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/synonyms.hpp"

#include "bind.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace finch::config {
namespace {

void* follow(const Steps& steps, void* object) {
    for (const Step& step : steps) {
        object = step.part(object, step.number);
    }
    return object;
}

bool has_gene(const Tree& tree) {
    return is_gene(tree) || std::any_of(tree.items.begin(), tree.items.end(), has_gene);
}

/// Returns `section` without the keys that have genes as values. The removed keys have their defaults until the genes
/// are applied.
Tree without_genes(const Tree& section, const std::string& path) {
    Tree left{.kind = Tree::Kind::map, .place = section.place, .gene = section.gene};
    for (std::size_t i = 0; i < section.items.size(); ++i) {
        const Tree& value = section.items[i];
        if (is_gene(value)) {
            continue;
        }
        if (has_gene(value)) {
            fail(value, path_of(path, section.keys[i]),
                 "has genes inside, below an alternative that a gene chooses; accepted: genes for its plain values");
        }
        left.keys.push_back(section.keys[i]);
        left.items.push_back(value);
    }
    return left;
}

/// Returns a completed YAML value for each of `texts`, the values that a gene can have. Throws ConfigError if the key
/// does not accept one of these values.
std::vector<Tree> completed(const std::vector<std::string>& texts, const Tree& use, const std::string& gene,
                            const Domain& domain, const std::string& path, const Tree* listed) {
    std::vector<Tree> trees;
    for (const std::string& text : texts) {
        Tree tree = use;
        tree.text = text;
        tree.gene = gene;
        if (const Tree* const said = listed != nullptr ? listed->find(text) : nullptr;
            said != nullptr && said->kind == Tree::Kind::map) {
            tree = {.kind = Tree::Kind::map,
                    .keys = {text},
                    .items = {without_genes(*said, path_of(path, text))},
                    .place = use.place,
                    .gene = gene};
        }
        trees.push_back(complete(domain, tree, path));
    }
    return trees;
}

}  // namespace

bool is_gene(const Tree& tree) {
    return tree.gene_name() && !tree.quoted;
}

Genes::Genes(const search::Space& space, const Tree& written) : space_(space), written_(written) {}

std::size_t Genes::find(const Tree& use, const std::string& path) const {
    const std::string name = *use.gene_name();
    if (const int index = space_.index_of(name); index >= 0) {
        return static_cast<std::size_t>(index);
    }
    std::vector<std::string> known;
    for (const search::Gene& gene : space_.genes) {
        known.push_back(gene.name);
    }
    const auto meant = meant_word(name, known);
    fail(use, path,
         fmt::format("'${}' names no gene{}; accepted: {}", name,
                     meant ? fmt::format(" (did you mean '${}'?)", *meant) : "",
                     known.empty() ? "a value, since there is no gene"
                                   : fmt::format("a value, or ${}", fmt::join(known, ", $"))));
}

void Genes::bind(const Tree& use, const Domain& domain, const Target& target, const ValueType& type,
                 const Tree* listed) {
    const std::size_t index = find(use, target.path);
    const search::Gene& gene = space_.genes[index];
    if (!gene.when.empty() && !target.has_default) {
        fail(use, target.path,
             fmt::format("'${0}' stands where there is no default to take its place while the gene is not active, and "
                         "search.space.{0} has `when`; accepted: a gene without it, or a key that has a default",
                         gene.name));
    }
    std::vector<std::string> texts;
    for (const double value : trial_values(gene)) {
        texts.push_back(search::value_text(gene, value));
    }
    const std::string words = fmt::format("gene search.space.{} ({})", gene.name, written_[gene.name].place);
    const std::vector<Tree> trees = completed(texts, use, words, domain, target.path, listed);
    if (std::holds_alternative<search::ChoiceGene>(gene.kind)) {
        bound_.push_back({within_, repeats_, index, target.steps,
                          [set = type.options(trees, domain, target)](void* object, double value) {
                              set(object, static_cast<std::size_t>(value));
                          }});
    } else {
        bound_.push_back({within_, repeats_, index, target.steps, type.set_number});
    }
}

void Genes::enter(const Tree& use, const std::string& option, const Tree& at, const std::string& path) {
    const std::size_t index = find(use, path);
    const search::Gene& gene = space_.genes[index];
    const auto value = search::value_in(gene, option);
    if (!value && !search::is_fixed(gene)) {
        fail(at, path_of(path, option),
             fmt::format("is no value of search.space.{}, which chooses here; accepted: {}", gene.name,
                         search::accepted_values(gene)));
    }
    within_.push_back({index, value ? std::vector{*value} : std::vector<double>()});
}

void Genes::enter_repeat(const Tree& use, const std::string& path) {
    const std::size_t index = find(use, path);
    const auto zero = search::value_in(space_.genes[index], "0");
    repeats_.push_back({index, zero ? std::vector{*zero} : std::vector<double>(), true});
}

search::Space Genes::space_with_uses() const {
    std::vector<bool> everywhere(space_.size());
    for (const search::Gene& gene : space_.genes) {
        for (const search::Condition& condition : gene.when) {
            everywhere[condition.gene] = true;
        }
    }
    search::Space space = space_;
    for (const Bound& bound : bound_) {
        Conditions use = bound.within;
        std::copy_if(bound.repeats.begin(), bound.repeats.end(), std::back_inserter(use),
                     [](const search::Condition& condition) { return !condition.values.empty(); });
        everywhere[bound.gene] = everywhere[bound.gene] || use.empty();
        space.genes[bound.gene].uses.push_back(std::move(use));
    }
    for (std::size_t i = 0; i < space.size(); ++i) {
        if (everywhere[i]) {
            space.genes[i].uses.clear();
        }
    }
    return space;
}

bool Genes::may_be_inactive(const Tree& use) const {
    const int index = space_.index_of(use.gene_name().value_or(""));
    return index >= 0 && !space_.genes[static_cast<std::size_t>(index)].when.empty();
}

void Genes::add_check(std::function<void(const void*, const Tree&)> check, const Tree& written, Steps steps) {
    checks_.push_back({within_, std::move(check), written, std::move(steps)});
}

void Genes::apply(const search::Genome& genome, train::Recipe& recipe) const {
    const std::vector<bool> active = search::active_genes(space_, genome);
    const auto all_hold = [&](const Conditions& within) {
        return std::all_of(within.begin(), within.end(), [&](const search::Condition& condition) {
            return search::holds(condition, genome, active);
        });
    };
    for (const Bound& bound : bound_) {
        if (active[bound.gene] && all_hold(bound.within)) {
            bound.set(follow(bound.steps, &recipe), genome.at(bound.gene));
        }
    }
    for (const Check& check : checks_) {
        if (all_hold(check.within)) {
            check.check(follow(check.steps, &recipe), check.written);
        }
    }
}

void Genes::check_used() const {
    std::vector<bool> used(space_.size());
    for (const Bound& bound : bound_) {
        used[bound.gene] = true;
    }
    for (const search::Gene& gene : space_.genes) {
        for (const search::Condition& condition : gene.when) {
            used[condition.gene] = true;
        }
    }
    for (std::size_t i = 0; i < space_.size(); ++i) {
        if (!used[i]) {
            const std::string& name = space_.genes[i].name;
            fail(written_[name], path_of("search.space", name),
                 fmt::format("nothing uses this gene; write ${} for a value of data, model or training, or remove it",
                             name));
        }
    }
}

void Genes::activate(std::size_t gene, search::Genome& genome) const {
    for (const search::Condition& condition : space_.genes[gene].when) {
        const auto& values = condition.values;
        if (!values.empty() && std::find(values.begin(), values.end(), genome[condition.gene]) == values.end()) {
            genome[condition.gene] = values.front();
        }
        activate(condition.gene, genome);
    }
}

void Genes::check(const train::Recipe& base, std::span<const search::Constraint> constraints) const {
    check_used();
    search::Genome first;
    for (const search::Gene& gene : space_.genes) {
        first.push_back(trial_values(gene).front());
    }
    const auto try_genome = [&](const search::Genome& genome) {
        if (search::all_hold(constraints, space_, genome)) {
            train::Recipe recipe = base;
            apply(genome, recipe);
        }
    };
    try_genome(first);
    for (std::size_t i = 0; i < space_.size(); ++i) {
        for (const double value : trial_values(space_.genes[i])) {
            search::Genome genome = first;
            activate(i, genome);
            genome[i] = value;
            try_genome(genome);
        }
    }
}

std::vector<double> trial_values(const search::Gene& gene) {
    if (const auto* const choice = std::get_if<search::ChoiceGene>(&gene.kind)) {
        std::vector<double> all;
        for (std::size_t i = 0; i < choice->options.size(); ++i) {
            all.push_back(static_cast<double>(i));
        }
        return all;
    }
    const double last = search::snap(gene, std::numeric_limits<double>::infinity());
    if (search::is_fixed(gene)) {
        return {last};
    }
    const auto* const real = std::get_if<search::RealGene>(&gene.kind);
    if (real == nullptr) {
        return {search::first_value(gene), last};
    }
    const double golden = 0.381966;  // a point between the bounds, and no whole number if the bounds are
    return {real->low, last, search::snap(gene, real->low + golden * (real->high - real->low))};
}

}  // namespace finch::config
