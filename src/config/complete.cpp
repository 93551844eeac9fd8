#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/schema.hpp"
#include "finch/config/synonyms.hpp"

#include "hints.hpp"
#include "scalar_problem.hpp"

#include <algorithm>

namespace finch::config {
namespace {

using Kind = Tree::Kind;

std::string shown(const Tree& tree) {
    std::string value;
    switch (tree.kind) {
        case Kind::null:
            value = "it";
            break;
        case Kind::scalar:
            value = fmt::format("'{}'", tree.text);
            break;
        case Kind::list:
            value = "a list";
            break;
        case Kind::map:
            value = "a section";
            break;
    }
    return tree.gene.empty() ? value : fmt::format("{}, which {} can take,", value, tree.gene);
}

/// Returns " (did you mean {evaluations: 100}?)" for a scalar that the first such key of `section` accepts; otherwise
/// an empty text.
std::string meant_section(const Section& section, const Tree& tree) {
    for (const Key& key : section.keys) {
        if (tree.kind == Kind::scalar && !problem_of(tree, key.domain)) {
            return fmt::format(" (did you mean {{{}: {}}}?)", key.name, tree.text);
        }
    }
    return "";
}

/// Returns " (did you mean [lr]?)" for a scalar that a list of `either` accepts as an element; otherwise an empty text.
std::string meant_list(const Either& either, const Tree& tree) {
    const bool is_element = std::any_of(either.domains.begin(), either.domains.end(), [&](const Domain& domain) {
        const auto* const list = std::get_if<List>(&domain.is);
        return list != nullptr && !problem_of(tree, list->element.front());
    });
    return is_element ? fmt::format(" (did you mean [{}]?)", tree.text) : "";
}

/// Returns the section of `either` that has its first key in the map `tree`. If no section matches, returns the first
/// one. Returns null if `either` has no section.
const Domain* section_in(const Either& either, const Tree& tree) {
    const Domain* found = nullptr;
    for (const Domain& domain : either.domains) {
        if (const auto* const section = std::get_if<Section>(&domain.is)) {
            if (tree.find(section->keys.front().name) != nullptr) {
                return &domain;
            }
            found = found == nullptr ? &domain : found;
        }
    }
    return found;
}

[[noreturn]] void refuse(const Domain& domain, const Tree& tree, const std::string& path, const std::string& problem) {
    fail(tree, path, fmt::format("{} {}; accepted: {}", shown(tree), problem, accepts(domain)));
}

/// True for a key that only earlier versions have, if it changes no result: runs of these versions recorded it.
bool is_former(const std::string& path, const Tree& value) {
    return path == "data.expect" || (path == "search.budget.target_hypervolume" && value.kind == Kind::null);
}

bool genes_at(const Key& key, bool around) {
    return key.genes == Rule::yes || (around && key.genes == Rule::as_around);
}

Tree empty_map(const Tree& like) {
    return {.kind = Kind::map, .place = like.place, .gene = like.gene};
}

class Completion {
public:
    Completion(const Domain& domain, const Tree& tree, std::string path, bool genes)
        : domain_(domain), tree_(tree), path_(std::move(path)), genes_(genes) {}

    Tree operator()(const Section& section) const {
        if (tree_.kind != Kind::map && tree_.kind != Kind::null) {
            refuse(domain_, tree_, path_, "is no section" + meant_section(section, tree_) + meant_dash(tree_));
        }
        const auto known = names_of(section.keys);
        refuse_unknown_keys(known);
        Tree result = empty_map(tree_);
        for (const Key& key : section.keys) {
            const Tree* const given = tree_.find(key.name);
            if (given == nullptr && section.sparse) {
                continue;
            }
            result.keys.push_back(key.name);
            result.items.push_back(complete(key.domain, given ? *given : fallback_of(key, tree_.place),
                                            path_of(path_, key.name), genes_at(key, genes_)));
        }
        return result;
    }

    Tree operator()(const Variants& variants) const {
        const bool named = tree_.kind == Kind::scalar && !tree_.quoted;
        if (!named && tree_.kind != Kind::map) {
            refuse_kind();
        }
        if (tree_.kind == Kind::map && tree_.keys.size() == 1 && tree_.keys.front().front() == '$' && genes_) {
            return chosen_by_gene(variants);
        }
        if (tree_.kind == Kind::map && tree_.keys.size() != 1) {
            refuse(domain_, tree_, path_,
                   fmt::format("has {} keys, where exactly one stands{}", tree_.keys.size(),
                               meant_alternative(variants, tree_)));
        }
        const std::string& name = named ? tree_.text : tree_.keys.front();
        const auto known = names_of(variants.alternatives);
        const auto found = std::find(known.begin(), known.end(), name);
        if (found == known.end()) {
            const std::string gene = genes_ ? meant_gene_of(tree_, path_) : "";
            fail(named ? tree_ : tree_.items.front(), named ? path_ : path_of(path_, name),
                 fmt::format("{} is unknown{}; accepted: {}", named ? shown(tree_) : fmt::format("'{}'", name),
                             gene.empty() ? did_you_mean(name, known) : gene, accepts(domain_)));
        }
        return completed(variants.alternatives[static_cast<std::size_t>(found - known.begin())], named);
    }

    Tree operator()(const List& list) const {
        if (tree_.kind != Kind::list) {
            refuse(domain_, tree_, path_, tree_.kind == Kind::null ? "has no value" : "is no list" + meant_dash(tree_));
        }
        if (tree_.items.size() < list.least || tree_.items.size() > list.most) {
            fail(tree_, path_,
                 fmt::format("has {} entries; accepted: from {} to {}", tree_.items.size(), list.least, list.most));
        }
        Tree result{.kind = Kind::list, .place = tree_.place};
        for (std::size_t i = 0; i < tree_.items.size(); ++i) {
            result.items.push_back(complete(list.element.front(), tree_.items[i], path_of(path_, i), genes_));
        }
        return result;
    }

    Tree operator()(const Named& named) const {
        if (tree_.kind != Kind::map && tree_.kind != Kind::null) {
            refuse(domain_, tree_, path_, "is no section" + meant_dash(tree_));
        }
        Tree result = empty_map(tree_);
        result.keys = tree_.keys;
        for (std::size_t i = 0; i < tree_.keys.size(); ++i) {
            result.items.push_back(
                complete(named.element.front(), tree_.items[i], path_of(path_, tree_.keys[i]), genes_));
        }
        return result;
    }

    Tree operator()(const Either& either) const {
        if (tree_.kind == Kind::map) {
            const Domain* const section = section_in(either, tree_);
            return section != nullptr ? complete(*section, tree_, path_, genes_) : scalar();
        }
        for (const Domain& domain : either.domains) {
            const bool fits = (tree_.kind == Kind::null && std::holds_alternative<Null>(domain.is)) ||
                              (tree_.kind == Kind::list && std::holds_alternative<List>(domain.is));
            if (fits) {
                return complete(domain, tree_, path_, genes_);
            }
        }
        return scalar();
    }

    template <class Scalar>
    Tree operator()(const Scalar&) const {
        return scalar();
    }

private:
    /// Throws ConfigError if the section has a key that is not in `known`. One message names all of them.
    void refuse_unknown_keys(const std::vector<std::string>& known) const {
        const Tree* first = nullptr;
        std::string path;
        std::string problem;
        for (std::size_t i = 0; i < tree_.keys.size(); ++i) {
            const std::string& name = tree_.keys[i];
            if (std::find(known.begin(), known.end(), name) == known.end() &&
                !is_former(path_of(path_, name), tree_.items[i])) {
                std::string meant = meant_key(name, known, tree_, path_);
                meant = problem.find(meant) == std::string::npos ? meant : "";
                problem +=
                    first == nullptr ? fmt::format("unknown key{}", meant) : fmt::format(", {} too{}", name, meant);
                path = first == nullptr ? path_of(path_, name) : path;
                first = first == nullptr ? &tree_.items[i] : first;
            }
        }
        if (first != nullptr) {
            fail(*first, path, fmt::format("{}; accepted: {}", problem, fmt::join(known, ", ")));
        }
    }

    [[noreturn]] void refuse_kind() const {
        const std::string gene = genes_ ? meant_gene_of(tree_, path_) : "";
        refuse(domain_, tree_, path_,
               tree_.kind == Kind::null ? "has no value"
                                        : "is not accepted" + (gene.empty() ? meant_text(domain_, tree_) : gene));
    }

    Tree scalar() const {
        if (tree_.kind == Kind::null && std::holds_alternative<Null>(domain_.is)) {
            return tree_;
        }
        if (tree_.kind != Kind::scalar) {
            refuse_kind();
        }
        if (const auto problem = problem_of(tree_, domain_)) {
            const auto* const either = std::get_if<Either>(&domain_.is);
            const Domain* const section = either != nullptr ? section_in(*either, tree_) : nullptr;
            const bool has_hint = either == nullptr || problem->find("did you mean") != std::string::npos;
            refuse(domain_, tree_, path_,
                   *problem + (section != nullptr ? meant_section(std::get<Section>(section->is), tree_) : "") +
                       (has_hint ? "" : meant_list(*either, tree_)));
        }
        return tree_;
    }

    /// Completes `{$name: {ALTERNATIVE: value, …}}`: each alternative as if it were given alone.
    Tree chosen_by_gene(const Variants& variants) const {
        const Tree& listed = tree_.items.front();
        if (listed.kind != Kind::map) {
            fail(listed, path_of(path_, tree_.keys.front()),
                 fmt::format("{} is no section; accepted: a section of some of {}", shown(listed),
                             fmt::join(names_of(variants.alternatives), ", ")));
        }
        Tree values = empty_map(listed);
        for (std::size_t i = 0; i < listed.items.size(); ++i) {
            Tree one = empty_map(listed.items[i]);
            one.keys.push_back(listed.keys[i]);
            one.items.push_back(listed.items[i]);
            Tree value = complete(domain_, one, path_, genes_);
            values.keys.push_back(listed.keys[i]);
            values.items.push_back(value.kind == Kind::map ? std::move(value.items.front()) : listed.items[i]);
        }
        Tree result = empty_map(tree_);
        result.keys = tree_.keys;
        result.items.push_back(std::move(values));
        return result;
    }

    Tree completed(const Key& alternative, bool named) const {
        const auto* const section = std::get_if<Section>(&alternative.domain.is);
        Tree value = complete(alternative.domain, named ? fallback_of(alternative, tree_.place) : tree_.items.front(),
                              path_of(path_, alternative.name), genes_at(alternative, genes_));
        if (section != nullptr && section->keys.empty()) {
            return {.kind = Kind::scalar, .text = alternative.name, .place = tree_.place, .gene = tree_.gene};
        }
        Tree result = empty_map(tree_);
        result.keys.push_back(alternative.name);
        result.items.push_back(std::move(value));
        return result;
    }

    const Domain& domain_;
    const Tree& tree_;
    std::string path_;
    bool genes_;
};

}  // namespace

Tree complete(const Domain& domain, const Tree& tree, const std::string& path, bool genes) {
    if (tree.gene_name() && !tree.quoted) {
        if (!genes) {
            const bool is_path = tree.text.find('/') != std::string::npos;
            fail(tree, path,
                 fmt::format("{}; accepted: {}",
                             is_path ? "environment variables are not expanded" : "no gene can stand here",
                             accepts(domain)));
        }
        return tree;
    }
    return std::visit(Completion(domain, tree, path, genes), domain.is);
}

namespace {

/// Returns the section of the alternative NAME if `value` is `{NAME: …}`, otherwise null.
const Section* section_of_alternative(const Variants& variants, const Tree& value) {
    for (const Key& alternative : variants.alternatives) {
        if (value.kind == Tree::Kind::map && value.keys.size() == 1 && value.keys.front() == alternative.name) {
            return std::get_if<Section>(&alternative.domain.is);
        }
    }
    return nullptr;
}

/// Returns the section that describes the elements of the list `value`; null if `value` is not a list of sections.
const Section* section_of_elements(const Domain& domain, const Tree& value) {
    if (const auto* const either = std::get_if<Either>(&domain.is)) {
        for (const Domain& part : either->domains) {
            if (const Section* const section = section_of_elements(part, value)) {
                return section;
            }
        }
    }
    const auto* const list = value.kind == Tree::Kind::list ? std::get_if<List>(&domain.is) : nullptr;
    return list != nullptr ? std::get_if<Section>(&list->element.front().is) : nullptr;
}

}  // namespace

Tree fixed_part(const Section& section, const Tree& tree, bool fixed) {
    Tree part = empty_map(tree);
    for (const Key& key : section.keys) {
        const Tree* const value = tree.find(key.name);
        if (value == nullptr) {
            continue;
        }
        const bool here = key.fixed == Rule::yes || (fixed && key.fixed == Rule::as_around);
        const auto* const either = std::get_if<Either>(&key.domain.is);
        const Domain* const domain =
            either != nullptr && value->kind == Tree::Kind::map ? section_in(*either, *value) : &key.domain;
        const auto* const inner = domain != nullptr ? std::get_if<Section>(&domain->is) : nullptr;
        const auto* const variants = domain != nullptr ? std::get_if<Variants>(&domain->is) : nullptr;
        const Section* const chosen = variants != nullptr ? section_of_alternative(*variants, *value) : nullptr;
        Tree kept = inner != nullptr ? fixed_part(*inner, *value, here) : *value;
        if (chosen != nullptr) {
            kept.items.front() = fixed_part(*chosen, value->items.front(), here);
        }
        if (const Section* const elements = section_of_elements(key.domain, *value)) {
            for (Tree& item : kept.items) {
                item = fixed_part(*elements, item, here);
            }
        }
        if (inner != nullptr ? !kept.items.empty() : here) {
            part.keys.push_back(key.name);
            part.items.push_back(std::move(kept));
        }
    }
    return part;
}

}  // namespace finch::config
