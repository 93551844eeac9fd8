#include "genes.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/search/columns.hpp"

#include "bind.hpp"

#include <algorithm>

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
    search::RealGene gene{real_number(bounds.items[0]).value(), real_number(bounds.items[1]).value()};
    if (const Tree* const scale = tree.find("scale")) {
        gene.scale = enumerator<search::Scale>(scale->text).value();
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
    const search::IntGene gene{whole_number(bounds.items[0]).value(), whole_number(bounds.items[1]).value()};
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

/// The trees that a key would be given in place of a gene, complete; throws where the key does not take one.
std::vector<Tree> completed(const std::vector<std::string>& texts, const Tree& use, const std::string& gene,
                            const Domain& domain, const std::string& path) {
    std::vector<Tree> trees;
    for (const std::string& text : texts) {
        Tree tree = use;
        tree.text = text;
        tree.gene = gene;
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
    const auto nearest = nearest_word(name, known);
    fail(use, path,
         fmt::format("'${}' names no gene{}; accepted: {}", name,
                     nearest ? fmt::format(" (did you mean '${}'?)", *nearest) : "",
                     known.empty() ? "a value, since there is no gene"
                                   : fmt::format("a value, or ${}", fmt::join(known, ", $"))));
}

void Genes::bind(const Tree& use, const Domain& domain, const Place& place, const GeneSetter& setter) {
    const std::size_t index = find(use, place.path);
    const search::Gene& gene = space_.genes[index];
    std::vector<std::string> texts;
    for (const double value : trial_values(gene)) {
        texts.push_back(search::value_text(gene, value));
    }
    const std::string words = fmt::format("gene search.space.{} ({})", gene.name, written_[gene.name].place);
    const std::vector<Tree> trees = completed(texts, use, words, domain, place.path);
    if (std::holds_alternative<search::ChoiceGene>(gene.kind)) {
        bound_.push_back(
            {index, place.locate, [set = setter.options(trees, domain, place)](void* object, double value) {
                 set(object, static_cast<std::size_t>(value));
             }});
    } else {
        bound_.push_back({index, place.locate, setter.number});
    }
}

void Genes::add_check(std::function<void(const void*, const Tree&)> check, const Tree& written, Locate locate) {
    checks_.push_back({std::move(check), written, std::move(locate)});
}

void Genes::apply(const search::Genome& genome, train::Recipe& recipe) const {
    for (const Bound& bound : bound_) {
        bound.set(bound.locate(&recipe), genome.at(bound.gene));
    }
    for (const Check& check : checks_) {
        check.check(check.locate(&recipe), check.written);
    }
}

void Genes::check(const train::Recipe& base) const {
    search::Genome genome;
    for (std::size_t i = 0; i < space_.size(); ++i) {
        const auto stands_for_it = [i](const Bound& bound) { return bound.gene == i; };
        if (std::none_of(bound_.begin(), bound_.end(), stands_for_it)) {
            const std::string& name = space_.genes[i].name;
            fail(written_[name], path_of("search.space", name),
                 fmt::format("nothing uses this gene; write ${} for a value of data, model or training, or remove it",
                             name));
        }
        genome.push_back(trial_values(space_.genes[i]).front());
    }
    const auto try_genome = [&] {
        train::Recipe recipe = base;
        apply(genome, recipe);
    };
    try_genome();
    for (std::size_t i = 0; i < space_.size(); ++i) {
        const double before = genome[i];
        for (const double value : trial_values(space_.genes[i])) {
            genome[i] = value;
            try_genome();
        }
        genome[i] = before;
    }
}

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

}  // namespace finch::config
