#include "finch/config/schema.hpp"

#include <string>
#include <utility>

namespace finch::config {

Key Key::with_default(std::string yaml) && {
    fallback = std::move(yaml);
    return std::move(*this);
}

Key Key::with_genes(Rule rule) && {
    genes = rule;
    return std::move(*this);
}

Key Key::with_fixed(Rule rule) && {
    fixed = rule;
    return std::move(*this);
}

Key Key::as_repeat() && {
    is_repeat = true;
    return std::move(*this);
}

Tree fallback_of(const Key& key, const std::string& place) {
    Tree tree = parse_yaml(key.fallback, place);
    const auto resolve = [&place](auto&& self, Tree& at) -> void {
        at.place = place;
        for (Tree& item : at.items) {
            self(self, item);
        }
    };
    resolve(resolve, tree);
    return tree;
}

}  // namespace finch::config
