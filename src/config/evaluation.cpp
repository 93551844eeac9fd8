#include "evaluation.hpp"

#include "finch/base/format.hpp"
#include "finch/config/config.hpp"
#include "finch/config/keys.hpp"

#include "bind.hpp"
#include "domains.hpp"
#include "genes.hpp"

#include <algorithm>
#include <map>

/// How an individual is evaluated, in one form by which it can be compared with that of another configuration.
namespace finch::config {
namespace {

/// The text of each gene that is active, by its name.
using Values = std::map<std::string, std::string>;

Values values_of(const search::Space& space, const search::Genome& genome) {
    const std::vector<bool> active = search::active_genes(space, genome);
    Values values;
    for (std::size_t i = 0; i < space.size(); ++i) {
        if (active[i]) {
            values.emplace(space.genes[i].name, search::value_text(space.genes[i], genome.at(i)));
        }
    }
    return values;
}

/// The gene that stands for the whole of `tree`, alone or as `{$name: {ALTERNATIVE: …}}`; empty: none does.
std::string gene_of(const Tree& tree) {
    if (is_gene(tree)) {
        return *tree.gene_name();
    }
    return is_chosen_by_gene(tree) ? tree.keys.front().substr(1) : std::string();
}

const Key& key_named(const Section& section, const std::string& name) {
    return *std::find_if(section.keys.begin(), section.keys.end(), [&](const Key& key) { return key.name == name; });
}

const Key& objective_key() {
    return key_named(std::get<Section>(key_named(configuration(), "search").domain.is), "objective");
}

Tree scalar(std::string text) {
    return {.kind = Tree::Kind::scalar, .text = std::move(text)};
}

/// Genes replaced by their values. A key whose gene is not active goes, and so keeps its default.
Tree with_values(const Tree& tree, const Values& values) {
    if (const std::string gene = gene_of(tree); !gene.empty()) {
        const std::string& value = values.at(gene);
        const Tree* const listed = is_gene(tree) ? nullptr : tree.items.front().find(value);
        return listed == nullptr || listed->kind != Tree::Kind::map
                   ? scalar(value)
                   : Tree{.kind = Tree::Kind::map, .keys = {value}, .items = {with_values(*listed, values)}};
    }
    Tree result{.kind = tree.kind, .text = tree.text, .quoted = tree.quoted};
    for (std::size_t i = 0; i < tree.items.size(); ++i) {
        const std::string gene = gene_of(tree.items[i]);
        if (gene.empty() || values.contains(gene)) {
            result.items.push_back(with_values(tree.items[i], values));
            if (tree.kind == Tree::Kind::map) {
                result.keys.push_back(tree.keys[i]);
            }
        }
    }
    return result;
}

/// One form of each number, and nothing but that of a layer that is left out.
void normalize(Tree& tree) {
    if (tree.kind == Tree::Kind::scalar) {
        const bool is_whole = tree.text.find_first_not_of("-0123456789") == std::string::npos;
        const auto number = tree.quoted || (is_whole && tree.text != "-0") ? std::nullopt : real_number(tree);
        tree = scalar(number ? fmt::format("{}", *number + 0.0) : tree.text);
        return;
    }
    const Tree* const repeat = tree.find("repeat");
    if (tree.kind == Tree::Kind::map && repeat != nullptr && repeat->text == "0") {
        tree = {.kind = Tree::Kind::map, .keys = {"repeat"}, .items = {scalar("0")}};
    }
    for (Tree& item : tree.items) {
        normalize(item);
    }
}

/// Finds the values of genes in `pattern` that `tree` has in their places.
void match(const Tree& pattern, const Tree& tree, Values& found) {
    if (const std::string gene = gene_of(pattern); !gene.empty()) {
        const bool is_section = tree.kind == Tree::Kind::map && tree.keys.size() == 1;
        const std::string& value = is_section ? tree.keys.front() : tree.text;
        if (tree.kind == Tree::Kind::scalar || is_section) {
            found.try_emplace(gene, value);
        }
        const Tree* const listed = is_gene(pattern) ? nullptr : pattern.items.front().find(value);
        if (listed != nullptr && is_section) {
            match(*listed, tree.items.front(), found);
        }
        return;
    }
    for (std::size_t i = 0; i < pattern.items.size(); ++i) {
        const Tree* const other = pattern.kind == Tree::Kind::map ? tree.find(pattern.keys[i])
                                  : i < tree.items.size()         ? &tree.items[i]
                                                                  : nullptr;
        if (other != nullptr) {
            match(pattern.items[i], *other, found);
        }
    }
}

double value_near(const search::Gene& gene, const std::string& text) {
    if (const auto value = search::value_in(gene, text)) {
        return *value;
    }
    const auto number = real_number(scalar(text));
    const bool is_choice = std::holds_alternative<search::ChoiceGene>(gene.kind);
    return number && !is_choice ? search::snap(gene, *number) : search::first_value(gene);
}

/// `written` is evaluation_part(). Of a function or a program the genes stand apart.
Tree evaluation_of(const Tree& written, const Values& values, bool trains) {
    Tree tree = with_values(written, values);
    for (std::size_t i = 0; i < tree.items.size(); ++i) {
        const std::string& name = tree.keys[i];
        const Key& key = name == "objective" ? objective_key() : key_named(configuration(), name);
        tree.items[i] = complete(key.domain, tree.items[i], name);
    }
    if (Tree* const training = tree.find("training")) {
        settle_learning_rate(*training);
    }
    normalize(tree);
    if (!trains) {  // as the program gets them: 3.10 is not 3.1
        Tree genes{.kind = Tree::Kind::map};
        for (const auto& [name, value] : values) {
            genes.keys.push_back(name);
            genes.items.push_back(scalar(value == "-0" ? "0" : value));
        }
        tree.keys.emplace_back("genes");
        tree.items.push_back(std::move(genes));
    }
    return tree;
}

}  // namespace

void settle_learning_rate(Tree& training) {
    Tree& rate = *training.find("learning_rate");
    const Tree& optimizer = training["optimizer"];
    const std::string name = optimizer.kind == Tree::Kind::map ? optimizer.keys.front() : optimizer.text;
    for (const auto& [rule, usual] : usual_rates()) {
        if (rate.text == "auto" && name == rule) {
            rate.text = fmt::format("{}", usual);
        }
    }
}

Tree evaluation_part(const Tree& all) {
    const Tree fixed = fixed_part(configuration(), all);
    Tree part{.kind = Tree::Kind::map};
    for (const char* const name : {"data", "model", "training"}) {
        if (const Tree* const section = fixed.find(name)) {
            part.keys.emplace_back(name);
            part.items.push_back(*section);
        }
    }
    part.keys.emplace_back("objective");
    part.items.push_back(fixed["search"]["objective"]);
    return part;
}

std::string Config::evaluation(const search::Genome& genome) const {
    return emit(evaluation_of(*evaluation_, values_of(space, genome), trains()));
}

search::Genome Config::genome_like(const Config& other, const search::Genome& genome) const {
    Values values = values_of(other.space, genome);
    match(*evaluation_, evaluation_of(*other.evaluation_, values, other.trains()), values);
    search::Genome like;
    for (const search::Gene& gene : space.genes) {
        const auto known = values.find(gene.name);
        like.push_back(known != values.end() ? value_near(gene, known->second) : search::first_value(gene));
    }
    return search::canonical(space, std::move(like));
}

}  // namespace finch::config
