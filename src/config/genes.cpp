#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/tables.hpp"
#include "finch/search/columns.hpp"

#include "sections.hpp"

#include <algorithm>
#include <set>

namespace finch::config {
namespace {

constexpr std::size_t most_genes = 500;  // a row of population.h5 takes no more columns

void check_name(const Tree& gene, const std::string& name, const std::string& path) {
    static const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    if (name.size() > 64 || name.find_first_not_of(letters) != std::string::npos ||
        (name[0] >= '0' && name[0] <= '9')) {
        fail(gene, path, "is no name for a gene; accepted: at most 64 letters, digits and '_', no digit first");
    }
    const auto& reserved = search::reserved_columns();
    if (std::find(reserved.begin(), reserved.end(), name) != reserved.end()) {
        fail(gene, path,
             fmt::format("is a column of every individual's row, so no gene can have this name; accepted: "
                         "any other, such as {0}_gene (and ${0}_gene where it stands)",
                         name));
    }
}

/// "{real: [low, high]}" and the like, which `accepts` cannot say as well.
constexpr const char* shapes =
    "{real: [low, high]}, {real: [low, high], scale: log}, {int: [low, high]} or {choice: [a, b, ...]}";

search::RealGene read_real(const Tree& tree, const std::string& path) {
    const Tree& bounds = tree["real"];
    search::RealGene gene{real_of(bounds.items[0]), real_of(bounds.items[1])};
    if (const Tree* const scale = tree.find("scale")) {
        gene.scale = word_of<search::Scale>(*scale, words::scales);
    }
    if (!(gene.low < gene.high)) {
        fail(bounds, path + ".real",
             fmt::format("[{}, {}] {}; accepted: [low, high] with low < high", bounds.items[0].text,
                         bounds.items[1].text, gene.low > gene.high ? "is reversed" : "is empty: there is one value"));
    }
    if (gene.scale == search::Scale::log && !(gene.low > 0)) {
        fail(bounds, path + ".real",
             fmt::format("the low bound {} has no logarithm; accepted with scale log: a low bound above 0",
                         bounds.items[0].text));
    }
    return gene;
}

search::IntGene read_int(const Tree& tree, const std::string& path) {
    const Tree& bounds = tree["int"];
    const search::IntGene gene{whole_of(bounds.items[0]), whole_of(bounds.items[1])};
    if (gene.low > gene.high) {
        fail(bounds, path + ".int",
             fmt::format("[{}, {}] is reversed; accepted: [low, high] with low <= high", gene.low, gene.high));
    }
    return gene;
}

search::ChoiceGene read_choice(const Tree& tree, const std::string& path) {
    search::ChoiceGene gene;
    for (const Tree& option : tree["choice"].items) {
        if (std::find(gene.options.begin(), gene.options.end(), option.text) != gene.options.end()) {
            fail(option, path + ".choice",
                 fmt::format("'{}' stands there twice; accepted: different values", option.text));
        }
        gene.options.push_back(option.text);
    }
    return gene;
}

search::Gene read_gene(const std::string& name, const Tree& tree) {
    const std::string path = path_of("search.space", name);
    check_name(tree, name, path);
    const auto kinds =
        std::count_if(tree.keys.begin(), tree.keys.end(), [](const auto& key) { return key != "scale"; });
    if (kinds != 1) {
        fail(tree, path, fmt::format("has {} of the keys real, int and choice; accepted: {}", kinds, shapes));
    }
    if (tree.find("scale") != nullptr && tree.find("real") == nullptr) {
        fail(*tree.find("scale"), path + ".scale", fmt::format("is for real genes alone; accepted: {}", shapes));
    }
    if (tree.find("real") != nullptr) {
        return {name, read_real(tree, path)};
    }
    if (tree.find("int") != nullptr) {
        return {name, read_int(tree, path)};
    }
    return {name, read_choice(tree, path)};
}

/// Calls `visit(tree, path)` for every `$name` below `tree`.
template <class Visit>
void for_each_use(const Tree& tree, const std::string& path, const Visit& visit) {
    if (tree.gene_name() && !tree.quoted) {
        visit(tree, path);
    }
    for (std::size_t i = 0; i < tree.items.size(); ++i) {
        for_each_use(tree.items[i], tree.kind == Tree::Kind::list ? path_of(path, i) : path_of(path, tree.keys[i]),
                     visit);
    }
}

void replace_genes(Tree& tree, const search::Space& space, const search::Genome& genome,
                   const std::vector<std::string>& gene_words) {
    if (const auto name = tree.gene_name(); name && !tree.quoted) {
        const auto index = static_cast<std::size_t>(space.index_of(*name));
        tree.text = search::value_text(space.genes[index], genome.at(index));
        tree.gene = gene_words[index];
    }
    for (Tree& item : tree.items) {
        replace_genes(item, space, genome, gene_words);
    }
}

}  // namespace

search::Space read_space(const Tree& tree) {
    if (tree.items.size() > most_genes) {
        fail(tree, "search.space", fmt::format("has {} genes; accepted: at most {}", tree.items.size(), most_genes));
    }
    search::Space space;
    for (std::size_t i = 0; i < tree.items.size(); ++i) {
        space.genes.push_back(read_gene(tree.keys[i], tree.items[i]));
    }
    return space;
}

void check_uses(const Config::Sections& sections, const search::Space& space, const Tree& written) {
    std::vector<std::string> known;
    for (const search::Gene& gene : space.genes) {
        known.push_back(gene.name);
    }
    std::set<std::string> used;
    const auto check = [&](const Tree& use, const std::string& path) {
        const std::string name = *use.gene_name();
        if (space.index_of(name) < 0) {
            const auto nearest = nearest_word(name, known);
            fail(use, path,
                 fmt::format("'${}' names no gene{}; accepted: {}", name,
                             nearest ? fmt::format(" (did you mean '${}'?)", *nearest) : "",
                             known.empty() ? "a value, since there is no gene"
                                           : fmt::format("a value, or ${}", fmt::join(known, ", $"))));
        }
        used.insert(name);
    };
    for_each_use(sections.data, "data", check);
    for_each_use(sections.model, "model", check);
    for_each_use(sections.training, "training", check);
    for (std::size_t i = 0; i < written.items.size(); ++i) {
        if (!used.contains(written.keys[i])) {
            fail(written.items[i], path_of("search.space", written.keys[i]),
                 fmt::format("nothing uses this gene; write ${} for a value of data, model or training, or remove it",
                             written.keys[i]));
        }
    }
}

Config::Sections substitute(const Config::Sections& sections, const search::Space& space,
                            const search::Genome& genome) {
    Config::Sections result = sections;
    for (Tree* const tree : {&result.data, &result.model, &result.training}) {
        replace_genes(*tree, space, genome, sections.gene_words);
    }
    result.data = complete(data_table(), result.data, "data");
    result.model = complete(model_table(), result.model, "model");
    result.training = complete(training_table(), result.training, "training");
    return result;
}

std::vector<double> trial_values(const search::Gene& gene) {
    if (const auto* const choice = std::get_if<search::ChoiceGene>(&gene.kind)) {
        std::vector<double> all;
        for (std::size_t i = 0; i < choice->options.size(); ++i) {
            all.push_back(static_cast<double>(i));
        }
        return all;
    }
    if (const auto* const whole = std::get_if<search::IntGene>(&gene.kind)) {
        return {static_cast<double>(whole->low), static_cast<double>(whole->high)};
    }
    const auto& real = std::get<search::RealGene>(gene.kind);
    const double golden = 0.381966;  // between the bounds, and no whole number where the bounds are
    return {real.low, real.high, real.low + golden * (real.high - real.low)};
}

void check_extremes(const Config::Sections& sections, const search::Space& space) {
    search::Genome genome;
    for (const search::Gene& gene : space.genes) {
        genome.push_back(trial_values(gene).front());
    }
    const auto check = [&] {
        const Config::Sections values = substitute(sections, space, genome);
        (void)read_data(values.data);
        (void)read_model(values.model);
        (void)read_training(values.training);
    };
    check();
    for (std::size_t i = 0; i < space.size(); ++i) {
        const double before = genome[i];
        for (const double value : trial_values(space.genes[i])) {
            genome[i] = value;
            check();
        }
        genome[i] = before;
    }
}

}  // namespace finch::config
