#include "bind.hpp"

namespace finch::config {
namespace {

/// Sets the members that a section's keys are bound to: only the repeat count if `are_repeats`, otherwise all others.
void set_keys(const Section& section, const Tree& tree, const Target& target, bool are_repeats) {
    for (const Key& key : section.keys) {
        const Tree* const value = tree.find(key.name);
        if (value != nullptr && key.set && key.is_repeat == are_repeats) {
            set_key(key, *value, target);
        }
    }
}

/// Returns the gene that sets the section's repeat count; null if no gene does.
const Tree* repeat_gene(const Section& section, const Tree& tree) {
    for (const Key& key : section.keys) {
        if (const Tree* const value = tree.find(key.name); key.is_repeat && value != nullptr && is_gene(*value)) {
            return value;
        }
    }
    return nullptr;
}

}  // namespace

std::string null_keyword(const Domain& domain) {
    if (const auto* const one_of = std::get_if<Either>(&domain.is)) {
        for (const Domain& part : one_of->domains) {
            if (const auto* const words = std::get_if<Word>(&part.is)) {
                return words->words.front();
            }
        }
    }
    return "";
}

const Domain& element_of(const Domain& domain) {
    if (const auto* const list = std::get_if<List>(&domain.is)) {
        return list->element.front();
    }
    const auto& domains = std::get<Either>(domain.is).domains;
    const auto is_list = [](const Domain& part) { return std::holds_alternative<List>(part.is); };
    return element_of(*std::find_if(domains.begin(), domains.end(), is_list));
}

Chosen chosen(const Variants& variants, const Tree& tree) {
    const bool named = tree.kind == Tree::Kind::scalar;
    const std::string& name = named ? tree.text : tree.keys.front();
    const auto has_name = [&](const Key& key) { return key.name == name; };
    return {*std::find_if(variants.alternatives.begin(), variants.alternatives.end(), has_name),
            named ? tree : tree.items.front()};
}

namespace {

/// True for `{$name: {ALTERNATIVE: …, …}}`: a gene chooses the alternative, and settings are given for some
/// alternatives.
bool is_chosen_by_gene(const Tree& tree) {
    return tree.kind == Tree::Kind::map && tree.keys.size() == 1 && tree.keys.front().front() == '$';
}

void read_chosen_by_gene(const ValueType& type, const Tree& tree, const Domain& domain, const Target& target) {
    const Tree& listed = tree.items.front();
    const Tree use{.kind = Tree::Kind::scalar, .text = tree.keys.front(), .place = listed.place};
    target.genes->bind(use, domain, target, type, &listed);
    for (std::size_t i = 0; i < listed.items.size(); ++i) {
        target.genes->enter(use, listed.keys[i], listed.items[i], target.path);
        const Tree one{.kind = Tree::Kind::map, .keys = {listed.keys[i]}, .items = {listed.items[i]}};
        set_key(chosen(std::get<Variants>(domain.is), one).key, listed.items[i], target);
        target.genes->leave();
    }
}

}  // namespace

Target Target::below(std::string part_path, Step step) const {
    Target part{step.part(object, step.number), steps, std::move(part_path), genes, has_default};
    part.steps.push_back(step);
    return part;
}

Step member_at(std::size_t offset) {
    return {[](void* owner, std::size_t bytes) -> void* { return static_cast<char*>(owner) + bytes; }, offset};
}

void read(const ValueType& type, const Tree& tree, const Domain& domain, const Target& target) {
    if (is_gene(tree)) {
        target.genes->bind(tree, domain, target, type);
    } else if (is_chosen_by_gene(tree)) {
        read_chosen_by_gene(type, tree, domain, target);
    } else {
        type.assign(tree, domain, target);
    }
}

void set_key(const Key& key, const Tree& value, const Target& target) {
    Target here = target;
    here.has_default = is_gene(value) && target.genes != nullptr && target.genes->may_be_inactive(value);
    if (here.has_default) {
        key.set(complete(key.domain, fallback_of(key, value.place), path_of(target.path, key.name)),
                {.object = target.object, .path = target.path});
    }
    key.set(value, here);
}

void read_section(const Section& section, const Tree& tree, const Target& target) {
    if (is_gene(tree)) {
        target.genes->bind(tree, {section}, target, {});  // always throws: a gene cannot be a section
        return;
    }
    if (const Tree* const repeat = repeat_gene(section, tree)) {
        target.genes->enter_repeat(*repeat, path_of(target.path, "repeat"));
        set_keys(section, tree, target, false);
        target.genes->leave_repeat();
    } else {
        set_keys(section, tree, target, false);
    }
    set_keys(section, tree, target, true);
    if (section.check && target.genes != nullptr) {
        target.genes->add_check(section.check, tree, target.steps);
    } else if (section.check) {
        section.check(target.object, tree);
    }
}

const Section& section_of(const Domain& domain) {
    const auto* const one_of = std::get_if<Either>(&domain.is);
    return std::get<Section>(one_of != nullptr ? one_of->domains.back().is : domain.is);
}

// Keys share their domains by std::shared_ptr: keys are copied, and the domain of a block of layers contains layers.

Key key_at(std::string name, std::size_t offset, const ValueType& type, std::string fallback, Domain domain,
           std::string meaning) {
    auto set = [name, offset, &type, accepted = std::make_shared<const Domain>(domain)](const Tree& tree,
                                                                                        const Target& owner) {
        read(type, tree, *accepted, owner.below(path_of(owner.path, name), member_at(offset)));
    };
    return {std::move(name), std::move(fallback), std::move(domain), std::move(meaning), std::move(set)};
}

Key alternative_of(std::string name, std::function<void(void*)> begin, Step part, Section section,
                   std::string meaning) {
    auto set = [name, begin = std::move(begin), part, keys = std::make_shared<const Section>(section)](
                   const Tree& tree, const Target& variant) {
        begin(variant.object);
        read_section(*keys, tree, variant.below(path_of(variant.path, name), part));
    };
    return {std::move(name), "{}", {std::move(section)}, std::move(meaning), std::move(set)};
}

Key group(std::string name, Domain domain, std::string meaning) {
    // If the value is a word such as `none`, the owner object does not change.
    static constexpr ValueType words{
        .options = [](const std::vector<Tree>&, const Domain&,
                      const Target&) -> std::function<void(void*, std::size_t)> { return [](void*, std::size_t) {}; }};
    auto set = [name, domain, section = section_of(domain)](const Tree& tree, const Target& owner) {
        const Target here = owner.below(path_of(owner.path, name), member_at(0));
        if (is_gene(tree)) {
            here.genes->bind(tree, domain, here, words);
        } else if (tree.kind == Tree::Kind::map) {
            read_section(section, tree, here);
        }
    };
    return {name, "{}", std::move(domain), std::move(meaning), std::move(set)};
}

}  // namespace finch::config
