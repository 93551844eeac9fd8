#include "finch/base/format.hpp"
#include "finch/config/config.hpp"
#include "finch/config/keys.hpp"
#include "finch/config/schema.hpp"

#include <sstream>

namespace finch::config {
namespace {

constexpr std::size_t width = 110;  // columns

/// Returns `text` as comment lines, broken between words.
std::string comment(const std::string& text, std::size_t indent) {
    const std::string margin(indent, ' ');
    std::istringstream words(text);
    std::string out;
    std::string line;
    for (std::string word; words >> word;) {
        if (!line.empty() && indent + 3 + line.size() + word.size() > width) {
            out += margin + "#" + line + "\n";
            line.clear();
        }
        line += " " + word;
    }
    return out + margin + "#" + line + "\n";
}

/// Returns each line of `yaml` behind a '#' in column `indent`.
std::string commented_out(const std::string& yaml, std::size_t indent) {
    std::istringstream lines(yaml);
    std::string out;
    for (std::string line; std::getline(lines, line);) {
        out += std::string(indent, ' ') + "#   " + line + "\n";
    }
    return out;
}

std::string keys_text(const std::vector<Key>& keys, const Tree& values, std::size_t indent);

/// Returns the text of a section with all its defaults.
std::string section_text(const Section& section, std::size_t indent) {
    const Tree nothing{.kind = Tree::Kind::map, .place = "default"};
    Section dense = section;
    dense.sparse = false;
    return keys_text(section.keys, complete({dense}, nothing, ""), indent);
}

/// Returns "name:" and the keys of an alternative, or "name: value".
std::string alternative_text(const Key& key) {
    const auto* const section = std::get_if<Section>(&key.domain.is);
    if (section == nullptr) {
        return fmt::format("{}: {}\n", key.name, key.fallback);
    }
    return section->keys.empty() ? key.name + "\n" : key.name + ":\n" + section_text(*section, 2);
}

/// Returns comment lines below a key: the other alternatives and sections that the key accepts.
std::string others_text(const Domain& domain, const std::string& active, std::size_t indent) {
    std::string out;
    if (const auto* const variants = std::get_if<Variants>(&domain.is)) {
        for (const Key& key : variants->alternatives) {
            if (key.name != active) {
                out += comment(fmt::format("or {}: {}", key.name, key.meaning), indent);
                out += commented_out(alternative_text(key), indent);
            }
        }
    } else if (const auto* const list = std::get_if<List>(&domain.is); list != nullptr && !list->described) {
        out += others_text(list->element.front(), "", indent);
    } else if (const auto* const named = std::get_if<Named>(&domain.is)) {
        if (const auto* const section = std::get_if<Section>(&named->element.front().is)) {
            out += comment("for each name one of real, int, choice and value, and the other keys that apply to it:",
                           indent);
            out += commented_out(section_text(*section, 0), indent);
        }
    } else if (const auto* const either = std::get_if<Either>(&domain.is)) {
        for (const Domain& part : either->domains) {
            if (const auto* const section = std::get_if<Section>(&part.is)) {
                out += comment("or a section:", indent) + commented_out(section_text(*section, 0), indent);
            }
        }
    }
    return out;
}

std::string key_text(const Key& key, const Tree& value, std::size_t indent) {
    const std::string margin(indent, ' ');
    if (const auto* const section = std::get_if<Section>(&key.domain.is)) {
        return comment(key.meaning, indent) + margin + key.name + ":\n" + keys_text(section->keys, value, indent + 2);
    }
    std::string out = comment(fmt::format("{} ({})", key.meaning, accepts(key.domain)), indent);
    const auto* const variants = std::get_if<Variants>(&key.domain.is);
    if (variants != nullptr && value.kind == Tree::Kind::map) {
        out += margin + key.name + ":\n" + margin + "  " + value.keys.front() + ":\n";
        for (const Key& alternative : variants->alternatives) {
            if (alternative.name == value.keys.front()) {
                out += keys_text(std::get<Section>(alternative.domain.is).keys, value.items.front(), indent + 4);
            }
        }
        return out + others_text(key.domain, value.keys.front(), indent + 2);
    }
    Tree line{.kind = Tree::Kind::map, .keys = {key.name}, .items = {value}};
    const bool nested = std::holds_alternative<List>(key.domain.is) || std::holds_alternative<Named>(key.domain.is) ||
                        std::holds_alternative<Either>(key.domain.is) || variants != nullptr;
    return out + emit(line, indent) + (nested ? others_text(key.domain, value.text, indent + 2) : "");
}

std::string keys_text(const std::vector<Key>& keys, const Tree& values, std::size_t indent) {
    std::string out;
    for (const Key& key : keys) {
        out += key_text(key, values[key.name], indent);
    }
    return out;
}

}  // namespace

std::string reference(const Section& section) {
    return section_text(section, 0);
}

std::string reference_text() {
    return comment(
               "Every key of a configuration with its default, its meaning and the values that it accepts. Keys may be "
               "left out. In data, model and training, $name may replace a value: the value is then the gene `name` of "
               "search.space. If such a gene chooses among alternatives, {$name: {ALTERNATIVE: …}} gives the keys of "
               "some alternatives.",
               0) +
           reference(configuration());
}

}  // namespace finch::config
