#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/config/tree.hpp"

#include <algorithm>
#include <array>

namespace finch::config {
namespace {

constexpr std::size_t longest_path = 64;  // keys; configurations are less deeply nested

void set_place(Tree& tree, const std::string& place) {
    tree.place = place;
    for (Tree& item : tree.items) {
        set_place(item, place);
    }
}

/// Splits a path: "model[0].conv" and "model.0.conv" both give model, 0, conv.
std::vector<std::string> parts_of(const std::string& path) {
    std::vector<std::string> parts{""};
    for (const char letter : path) {
        if (letter == '.' || letter == '[') {
            parts.emplace_back();
        } else if (letter != ']') {
            parts.back() += letter;
        }
    }
    return parts;
}

/// Returns the list item with the index `part`. Creates the item if its index is one beyond the last.
Tree& item_of(Tree& list, const std::string& part, const std::string& place) {
    const auto index = whole_number({.kind = Tree::Kind::scalar, .text = part});
    const auto size = static_cast<std::int64_t>(list.items.size());
    if (!index || *index < 0 || *index > size) {
        throw ConfigError(fmt::format("{}: {} is no item of this list; accepted: 0 to {}", place, part, size));
    }
    if (*index == size) {
        list.items.push_back({.place = place});
    }
    return list.items[static_cast<std::size_t>(*index)];
}

/// Returns the child of `tree` that `part` names, by key or index. If `tree` was a plain value, it becomes a section.
Tree& step(Tree& tree, const std::string& part, const std::string& place) {
    if (tree.kind == Tree::Kind::list) {
        return item_of(tree, part, place);
    }
    if (tree.kind != Tree::Kind::map) {
        tree = {.kind = Tree::Kind::map, .place = place};
    }
    if (Tree* const known = tree.find(part)) {
        return *known;
    }
    tree.keys.push_back(part);
    tree.items.push_back({.place = place});
    return tree.items.back();
}

/// True if `value` gives a single value to a gene that has a range or options.
bool freezes(const Tree& gene, const Tree& value) {
    constexpr std::array<const char*, 3> kinds{"real", "int", "choice"};
    return gene.kind == Tree::Kind::map && value.kind == Tree::Kind::scalar && (value.quoted || !value.gene_name()) &&
           std::any_of(kinds.begin(), kinds.end(), [&](const char* kind) { return gene.find(kind) != nullptr; });
}

}  // namespace

void apply_setting(Tree& root, const std::string& setting) {
    const std::size_t equals = setting.find('=');
    const std::string path = setting.substr(0, equals);
    const std::string place = "--set " + path;
    const auto parts = parts_of(path);
    if (equals == std::string::npos ||
        std::any_of(parts.begin(), parts.end(), [](const std::string& part) { return part.empty(); })) {
        throw ConfigError(fmt::format("--set {}: expected path.to.key=value", setting));
    }
    if (parts.size() > longest_path) {
        throw ConfigError(fmt::format("--set {}…: a path of {} keys; accepted: up to {}", path.substr(0, 40),
                                      parts.size(), longest_path));
    }
    Tree value = parse_yaml(setting.substr(equals + 1), place);
    set_place(value, place);
    Tree* at = &root;
    for (const std::string& part : parts) {
        at = &step(*at, part, place);
    }
    const bool is_gene = parts.size() == 3 && parts[0] == "search" && parts[1] == "space";
    if (is_gene && value.kind == Tree::Kind::map && value.keys == std::vector<std::string>{"value"} &&
        freezes(*at, value.items.front())) {
        value = Tree(value.items.front());
    }
    Tree& target = is_gene && freezes(*at, value) ? step(*at, "value", place) : *at;
    target = std::move(value);
}

}  // namespace finch::config
