#include "finch/base/format.hpp"
#include "finch/config/tree.hpp"

#include <algorithm>

namespace finch::config {
namespace {

bool is_plain(const Tree& scalar) {
    static const std::string safe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-/$~()";
    return !scalar.quoted && !scalar.text.empty() && scalar.text.find_first_not_of(safe) == std::string::npos &&
           scalar.text.front() != '~' && scalar.text != "-" && scalar.text.substr(0, 3) != "---" &&
           scalar.text.substr(0, 3) != "...";
}

/// Returns `text` in double quotes, escaped as YAML 1.2 (5.7) requires.
std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') {
            out += '\\';
            out += letter;
        } else if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
        } else {
            out += letter;
        }
    }
    return out + '"';
}

std::string emit_scalar(const Tree& tree) {
    if (tree.kind == Tree::Kind::null) {
        return "null";
    }
    return is_plain(tree) ? tree.text : quoted(tree.text);
}

bool is_flat(const Tree& tree) {
    return tree.items.empty() ||
           (tree.kind == Tree::Kind::list && std::all_of(tree.items.begin(), tree.items.end(), [](const Tree& item) {
                return item.items.empty() && item.kind < Tree::Kind::list;
            }));
}

/// Returns the YAML of a scalar, a list of scalars, or an empty map on one line.
std::string emit_flat(const Tree& tree) {
    if (tree.kind == Tree::Kind::map) {
        return "{}";
    }
    if (tree.kind != Tree::Kind::list) {
        return emit_scalar(tree);
    }
    std::vector<std::string> items;
    for (const Tree& item : tree.items) {
        items.push_back(emit_scalar(item));
    }
    return fmt::format("[{}]", fmt::join(items, ", "));
}

}  // namespace

std::string emit(const Tree& tree, std::size_t indent) {
    const std::string margin(indent, ' ');
    if (is_flat(tree)) {
        return margin + emit_flat(tree) + "\n";
    }
    std::string out;
    for (std::size_t i = 0; i < tree.items.size(); ++i) {
        const Tree& item = tree.items[i];
        if (tree.kind == Tree::Kind::list) {
            out += fmt::format("{}- {}", margin, emit(item, indent + 2).substr(indent + 2));
        } else {
            const Tree key{.kind = Tree::Kind::scalar, .text = tree.keys[i]};
            out += margin + emit_scalar(key) + ":";
            out += is_flat(item) ? fmt::format(" {}\n", emit_flat(item)) : fmt::format("\n{}", emit(item, indent + 2));
        }
    }
    return out;
}

}  // namespace finch::config
