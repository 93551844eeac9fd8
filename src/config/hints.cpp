#include "hints.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/keys.hpp"
#include "finch/config/synonyms.hpp"

#include <algorithm>
#include <array>
#include <sstream>

namespace finch::config {
namespace {

struct Place {
    std::string name;
    std::string path;
};

/// Collects the names and paths of all keys and alternatives below a domain.
struct CollectPlaces {
    std::vector<Place>& places;
    std::string path;

    void operator()(const Section& section) const { add(section.keys); }
    void operator()(const Variants& variants) const { add(variants.alternatives); }
    void operator()(const List& list) const { descend(list.element.front(), path + "[]"); }
    void operator()(const Named& named) const { descend(named.element.front(), path_of(path, "NAME")); }
    void operator()(const Either& either) const {
        for (const Domain& domain : either.domains) {
            descend(domain, path);
        }
    }
    template <class Scalar>
    void operator()(const Scalar&) const {}

    void add(const std::vector<Key>& keys) const {
        for (const Key& key : keys) {
            places.push_back({key.name, path_of(path, key.name)});
            descend(key.domain, places.back().path);
        }
    }
    void descend(const Domain& domain, const std::string& below) const {
        if (!below.ends_with(".layers[]") && !below.ends_with(".islands[]")) {  // they repeat `model` and `search`
            std::visit(CollectPlaces{places, below}, domain.is);
        }
    }
};

std::vector<Place> collect_places() {
    std::vector<Place> places;
    CollectPlaces{places, ""}(configuration());
    std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
        return std::count(a.path.begin(), a.path.end(), '.') < std::count(b.path.begin(), b.path.end(), '.');
    });
    return places;
}

/// Returns the keys of a configuration, those of outer sections first.
const std::vector<Place>& all_places() {
    static const std::vector<Place> places = collect_places();
    return places;
}

/// Returns `path` and the keys of `value` below it, as long as there is exactly one, and it exists.
std::string longest_path(std::string path, const Tree& value) {
    if (value.kind != Tree::Kind::map || value.keys.size() != 1) {
        return path;
    }
    std::string longer = path_of(path, value.keys.front());
    const auto& places = all_places();
    const bool exists =
        std::any_of(places.begin(), places.end(), [&](const Place& place) { return place.path == longer; });
    return exists ? longest_path(std::move(longer), value.items.front()) : path;
}

/// Returns the paths of the key `name` that a hint names, with the single keys of `value` below them: at most three. If
/// some paths are below the section at `around`, returns only those.
std::vector<std::string> paths_to_name(const std::string& name, const Tree& value, const std::string& around) {
    constexpr std::size_t most = 3;
    std::vector<std::string> paths = paths_of_key(name);
    std::erase_if(paths, [&](const std::string& path) { return path == around || path == around + "." + name; });
    const auto outside = std::stable_partition(paths.begin(), paths.end(),
                                               [&](const std::string& path) { return path.starts_with(around + "."); });
    paths.erase(outside == paths.begin() ? paths.end() : outside, paths.end());
    paths.resize(std::min(paths.size(), most));
    for (std::string& path : paths) {
        path = longest_path(path, value);
    }
    return paths;
}

bool is_spelled_alike(const std::string& name, std::span<const std::string> known) {
    const auto nearest = nearest_word(name, known);
    return nearest && edit_distance(name, *nearest) == 1;
}

const Tree* gene_of(const Tree& root, const std::string& name) {
    const Tree* const search = root.find("search");
    const Tree* const space = search != nullptr ? search->find("space") : nullptr;
    return space != nullptr ? space->find(name) : nullptr;
}

constexpr std::array<const char*, 3> kinds{"real", "int", "choice"};
const std::vector<std::string>& gene_kinds() {
    static const std::vector<std::string> words(kinds.begin(), kinds.end());
    return words;
}

bool is_list_of_scalars(const Tree& tree) {
    return tree.kind == Tree::Kind::list && !tree.items.empty() &&
           std::all_of(tree.items.begin(), tree.items.end(),
                       [](const Tree& item) { return item.kind == Tree::Kind::scalar; });
}

/// Returns the genes that a list may stand for: "{int: [1, 3]} or {choice: [1, 3]}".
std::string genes_of_list(const Tree& list) {
    std::vector<std::string> values;
    for (const Tree& item : list.items) {
        values.push_back(item.text);
    }
    const std::string text = fmt::format("[{}]", fmt::join(values, ", "));
    const auto low = real_number(list.items.front());
    const auto high = real_number(list.items.back());
    if (list.items.size() != 2 || !low || !high || !(*low < *high)) {
        return fmt::format("{{choice: {}}}", text);
    }
    const bool are_whole = whole_number(list.items.front()) && whole_number(list.items.back());
    return fmt::format("{{{}: {}}} or {{choice: {}}}", are_whole ? "int" : "real", text, text);
}

/// Returns the alternative that `name` means, or null.
const Key* alternative_of(const Variants& variants, const std::string& name) {
    const auto own = own_word(name, names_of(variants.alternatives));
    for (const Key& key : variants.alternatives) {
        if (own && key.name == *own) {
            return &key;
        }
    }
    return nullptr;
}

}  // namespace

std::vector<std::string> paths_of_key(const std::string& name) {
    std::vector<std::string> names;
    for (const Place& place : all_places()) {
        names.push_back(place.name);
    }
    const auto own = own_word(name, names);
    std::vector<std::string> paths;
    for (const Place& place : all_places()) {
        if (own && place.name == *own) {
            paths.push_back(place.path);
        }
    }
    return paths;
}

std::string meant_key(const std::string& name, std::span<const std::string> known, const Tree& tree,
                      const std::string& path) {
    if (path.empty() && gene_of(tree, name) != nullptr) {
        return fmt::format(" (did you mean search.space.{}?)", name);
    }
    if (!own_word(name, known) && !is_spelled_alike(name, known)) {
        const std::vector<std::string> paths = paths_to_name(name, tree[name], path);
        if (!paths.empty()) {
            return fmt::format(" (did you mean {}?)", fmt::join(paths, " or "));
        }
    }
    return did_you_mean(name, known);
}

std::string meant_gene(const Tree& list) {
    return is_list_of_scalars(list) ? fmt::format(" (did you mean {}?)", genes_of_list(list)) : "";
}

std::string meant_call(const Tree& scalar) {
    const std::string& text = scalar.text;
    const std::size_t open = text.find('(');
    if (scalar.kind != Tree::Kind::scalar || scalar.quoted || open == std::string::npos || text.back() != ')') {
        return "";
    }
    Tree values{.kind = Tree::Kind::list};
    std::istringstream arguments(text.substr(open + 1, text.size() - open - 2));
    for (std::string value; std::getline(arguments >> std::ws, value, ',');) {
        values.items.push_back({.kind = Tree::Kind::scalar, .text = value});
    }
    if (open == 0) {
        return meant_gene(values);
    }
    return own_word(text, gene_kinds()) ? did_you_mean(text, gene_kinds()) : "";
}

std::string meant_gene_of(const Tree& tree, const std::string& path) {
    std::string gene;
    if (tree.kind == Tree::Kind::map && !tree.keys.empty() && own_word(tree.keys.front(), gene_kinds())) {
        gene = fmt::format("{{{}: ...}}", own_word(tree.keys.front(), gene_kinds()).value());
    } else if (is_list_of_scalars(tree)) {
        gene = genes_of_list(tree);
    }
    const std::string name = path.substr(path.find_last_of(".") + 1);
    return gene.empty()
               ? ""
               : fmt::format(" (did you mean a gene? write ${} here, and {}: {} in search.space)", name, name, gene);
}

std::string meant_alternative(const Variants& variants, const Tree& tree) {
    for (std::size_t i = 0; i < tree.keys.size(); ++i) {
        const bool is_named = tree.keys[i] == "type" || tree.keys[i] == "name" || tree.keys[i] == "kind";
        const Key* const named = is_named ? alternative_of(variants, tree.items[i].text) : nullptr;
        if (named != nullptr) {
            return fmt::format(" (did you mean {{{}: {{...}}}}?)", named->name);
        }
    }
    const Key* const first = tree.keys.empty() ? nullptr : alternative_of(variants, tree.keys.front());
    if (first != nullptr && tree.items.front().kind == Tree::Kind::null) {
        return fmt::format(" (indent {} more than {})", tree.keys[1], first->name);
    }
    return "";
}

std::string meant_dash(const Tree& tree) {
    const bool has_sections =
        tree.kind == Tree::Kind::list && !tree.items.empty() && tree.items.front().kind == Tree::Kind::map;
    return tree.kind == Tree::Kind::map ? " (begin each entry with '- ')" : has_sections ? " (leave out the '- ')" : "";
}

std::string meant_text(const Domain& domain, const Tree& tree) {
    const auto is_text = [](const Domain& one) { return std::holds_alternative<Text>(one.is); };
    const auto* const either = std::get_if<Either>(&domain.is);
    const bool takes_text =
        either == nullptr ? is_text(domain) : std::any_of(either->domains.begin(), either->domains.end(), is_text);
    return tree.kind == Tree::Kind::map && takes_text
               ? fmt::format(
                     " (YAML reads '{}: ' as a key; put the whole text in double quotes; on the command line: "
                     "--set 'key=\"text\"')",
                     tree.keys.empty() ? "" : printable_line(tree.keys.front()))
               : "";
}

}  // namespace finch::config
