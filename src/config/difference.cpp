#include "finch/base/format.hpp"
#include "finch/config/config.hpp"
#include "finch/config/tree.hpp"

#include <map>

namespace finch::config {
namespace {

/// Appends all scalars below `tree` and their paths to `out`, in document order.
void flatten(const Tree& tree, const std::string& path, std::vector<std::pair<std::string, Tree>>& out) {
    if (tree.items.empty()) {
        out.emplace_back(path, tree);
    }
    for (std::size_t i = 0; i < tree.items.size(); ++i) {
        flatten(tree.items[i], tree.kind == Tree::Kind::list ? path_of(path, i) : path_of(path, tree.keys[i]), out);
    }
}

std::string value_of(const Tree& tree) {
    switch (tree.kind) {
        case Tree::Kind::null:
            return "null";
        case Tree::Kind::list:
            return "[]";
        case Tree::Kind::map:
            return "{}";
        case Tree::Kind::scalar:
            break;
    }
    return tree.text;
}

/// True if two values are equal. 1e-4 and 0.0001 are equal as numbers. Options and values of genes (also `genes` of an
/// evaluation) are compared as text, since programs receive the text as written. Whole numbers are compared by their
/// digits: a double cannot represent all of them.
bool same(const std::string& path, const Tree& a, const Tree& b) {
    const bool is_text =
        path.starts_with("genes.") ||
        (path.starts_with("search.space.") && (path.ends_with(".value") || path.find(".choice[") != std::string::npos));
    const auto is_whole = [](const Tree& tree) {
        return tree.text.find_first_not_of("-0123456789") == std::string::npos;
    };
    const auto x = real_number(a);
    const auto y = real_number(b);
    const bool are_numbers = x && y && !is_text && !(is_whole(a) && is_whole(b));
    return are_numbers ? *x == *y : value_of(a) == value_of(b) && (!is_text || x.has_value() == y.has_value());
}

}  // namespace

std::string difference(const std::string& before, const std::string& now) {
    std::vector<std::pair<std::string, Tree>> old_values;
    std::vector<std::pair<std::string, Tree>> new_values;
    flatten(parse_yaml(before, "before"), "", old_values);
    flatten(parse_yaml(now, "now"), "", new_values);
    std::map<std::string, Tree> left(new_values.begin(), new_values.end());
    std::vector<std::string> lines;
    for (const auto& [path, value] : old_values) {
        const auto found = left.find(path);
        if (found == left.end()) {
            lines.push_back(fmt::format("{}: {} → nothing", path, value_of(value)));
            continue;
        }
        if (!same(path, value, found->second)) {
            lines.push_back(fmt::format("{}: {} → {}", path, value_of(value), value_of(found->second)));
        }
        left.erase(found);
    }
    for (const auto& [path, value] : new_values) {
        if (left.contains(path)) {
            lines.push_back(fmt::format("{}: nothing → {}", path, value_of(value)));
        }
    }
    return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace finch::config
