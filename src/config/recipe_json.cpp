#include "finch/base/format.hpp"
#include "finch/config/config.hpp"
#include "finch/config/keys.hpp"
#include "finch/config/tree.hpp"
#include "finch/search/gene.hpp"

#include <algorithm>

namespace finch::config {
namespace {

/// Replaces the genes of a complete section by the values of one genome.
class GenomeInTree {
public:
    GenomeInTree(const search::Space& space, const search::Genome& genome)
        : space_(space), genome_(genome), active_(search::active_genes(space, genome)) {}

    [[nodiscard]] Tree operator()(Tree tree) const {
        if (const auto gene = gene_in(tree)) {
            tree.text = text_of(*gene);
            return tree;
        }
        if (tree.kind == Tree::Kind::map && tree.keys.size() == 1 && tree.keys.front().front() == '$') {
            return chosen(tree);
        }
        Tree replaced = tree;
        replaced.keys.clear();
        replaced.items.clear();
        for (std::size_t i = 0; i < tree.items.size(); ++i) {
            const auto gene = gene_in(tree.items[i]);
            if (gene && !active_[*gene]) {
                continue;  // the key has its default
            }
            replaced.items.push_back((*this)(tree.items[i]));
            if (!tree.keys.empty()) {
                replaced.keys.push_back(tree.keys[i]);
            }
        }
        return replaced;
    }

private:
    [[nodiscard]] std::optional<std::size_t> gene_in(const Tree& tree) const {
        const auto name = tree.quoted ? std::nullopt : tree.gene_name();
        return name ? std::optional(static_cast<std::size_t>(space_.index_of(*name))) : std::nullopt;
    }
    [[nodiscard]] std::string text_of(std::size_t gene) const {
        return search::value_text(space_.genes[gene], genome_[gene]);
    }
    /// Returns the alternative that the gene of `{$name: {ALTERNATIVE: …, …}}` chooses.
    [[nodiscard]] Tree chosen(const Tree& tree) const {
        const Tree use{.kind = Tree::Kind::scalar, .text = tree.keys.front()};
        const std::string name = text_of(*gene_in(use));
        const Tree* const settings = tree.items.front().find(name);
        return settings == nullptr ? Tree{.kind = Tree::Kind::scalar, .text = name}
                                   : Tree{.kind = Tree::Kind::map, .keys = {name}, .items = {(*this)(*settings)}};
    }

    const search::Space& space_;
    const search::Genome& genome_;
    std::vector<bool> active_;
};

/// Returns a tree of numbers, flags and words as JSON.
std::string json(const Tree& tree) {
    std::vector<std::string> items;
    for (std::size_t i = 0; i < tree.items.size(); ++i) {
        items.push_back(tree.kind == Tree::Kind::map ? fmt::format("\"{}\":{}", tree.keys[i], json(tree.items[i]))
                                                     : json(tree.items[i]));
    }
    switch (tree.kind) {
        case Tree::Kind::null:
            return "null";
        case Tree::Kind::list:
            return fmt::format("[{}]", fmt::join(items, ","));
        case Tree::Kind::map:
            return fmt::format("{{{}}}", fmt::join(items, ","));
        case Tree::Kind::scalar:
            break;
    }
    const auto number = real_number(tree);
    return number ? fmt::format("{}", *number) : flag(tree) ? tree.text : fmt::format("\"{}\"", tree.text);
}

}  // namespace

std::string Config::recipe_json(const search::Genome& genome) const {
    const Tree all = parse_yaml(text_, "the configuration");
    const GenomeInTree with_genome(space, genome);
    std::vector<std::string> sections;
    for (const Key& key : configuration().keys) {
        if (key.name == "model" || key.name == "training") {
            const Tree section = complete(key.domain, with_genome(all[key.name]), key.name);
            sections.push_back(fmt::format("\"{}\":{}", key.name, json(section)));
        }
    }
    return fmt::format("{{{}}}", fmt::join(sections, ","));
}

}  // namespace finch::config
