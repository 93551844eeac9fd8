#include "finch/base/format.hpp"
#include "finch/config/schema.hpp"

#include <limits>

namespace finch::config {
namespace {

/// Joins words: "a", "a or b", "a, b or c".
std::string any_of(const std::vector<std::string>& words) {
    if (words.size() < 2) {
        return words.empty() ? "nothing" : words.front();
    }
    return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

struct Accepts {
    std::string operator()(const Null&) const { return "null"; }
    std::string operator()(const Whole& whole) const {
        if (whole.high == std::numeric_limits<std::int64_t>::max()) {
            return fmt::format("a whole number from {} on", whole.low);
        }
        return fmt::format("a whole number from {} to {}", whole.low, whole.high);
    }
    std::string operator()(const Real& real) const {
        return real.above ? fmt::format("a number above {} and up to {}", real.low, real.high)
                          : fmt::format("a number from {} to {}", real.low, real.high);
    }
    std::string operator()(const Flag&) const { return "true or false"; }
    std::string operator()(const Word& word) const { return any_of(word.words); }
    std::string operator()(const Text& text) const { return text.accepts; }
    std::string operator()(const Section& section) const {
        return section.keys.empty() ? "a section without keys"
                                    : fmt::format("a section of {}", fmt::join(names_of(section.keys), ", "));
    }
    std::string operator()(const Variants& variants) const { return any_of(names_of(variants.alternatives)); }
    std::string operator()(const List& list) const {
        return fmt::format("a list of at least {}, each {}", list.least, accepts(list.element.front()));
    }
    std::string operator()(const Named& named) const {
        return fmt::format("names, each with {}", accepts(named.element.front()));
    }
    std::string operator()(const Either& either) const {
        std::vector<std::string> parts;
        for (const Domain& domain : either.domains) {
            parts.push_back(accepts(domain));
        }
        return any_of(parts);
    }
};

}  // namespace

std::vector<std::string> names_of(const std::vector<Key>& keys) {
    std::vector<std::string> names;
    for (const Key& key : keys) {
        names.push_back(key.name);
    }
    return names;
}

std::string accepts(const Domain& domain) {
    return std::visit(Accepts{}, domain.is);
}

}  // namespace finch::config
