#include "bind.hpp"

namespace finch::config {
namespace {

/// The keys that say how often the section stands, or the others.
void set_keys(const Section& section, const Tree& tree, const Place& place, bool are_repeats) {
    for (const Key& key : section.keys) {
        const Tree* const value = tree.find(key.name);
        if (value != nullptr && key.set && key.is_repeat == are_repeats) {
            set_key(key, *value, place);
        }
    }
}

/// The gene that says how often the section stands, or null.
const Tree* repeat_gene(const Section& section, const Tree& tree) {
    for (const Key& key : section.keys) {
        if (const Tree* const value = tree.find(key.name); key.is_repeat && value != nullptr && is_gene(*value)) {
            return value;
        }
    }
    return nullptr;
}

}  // namespace

std::string word_for_nothing(const Domain& domain) {
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

bool is_chosen_by_gene(const Tree& tree) {
    return tree.kind == Tree::Kind::map && tree.keys.size() == 1 && tree.keys.front().front() == '$';
}

void read_chosen_by_gene(const Tree& tree, const Domain& domain, const Place& place, const GeneSetter& setter) {
    const Tree& listed = tree.items.front();
    const Tree use{.kind = Tree::Kind::scalar, .text = tree.keys.front(), .place = listed.place};
    place.genes->bind(use, domain, place, setter, &listed);
    for (std::size_t i = 0; i < listed.items.size(); ++i) {
        place.genes->enter(use, listed.keys[i], listed.items[i], place.path);
        const Tree one{.kind = Tree::Kind::map, .keys = {listed.keys[i]}, .items = {listed.items[i]}};
        set_key(chosen(std::get<Variants>(domain.is), one).key, listed.items[i], place);
        place.genes->leave();
    }
}

void set_key(const Key& key, const Tree& value, const Place& place) {
    Place here = place;
    here.has_default = is_gene(value) && place.genes != nullptr && place.genes->may_be_inactive(value);
    if (here.has_default) {
        key.set(complete(key.domain, fallback_of(key, value.place), path_of(place.path, key.name)),
                {.object = place.object, .path = place.path});
    }
    key.set(value, here);
}

void read_section(const Section& section, const Tree& tree, const Place& place) {
    if (is_gene(tree)) {
        place.genes->bind(tree, {section}, place, {});  // which refuses it: no gene is a section
        return;
    }
    if (const Tree* const repeat = repeat_gene(section, tree)) {
        place.genes->enter_repeat(*repeat, path_of(place.path, "repeat"));
        set_keys(section, tree, place, false);
        place.genes->leave_repeat();
    } else {
        set_keys(section, tree, place, false);
    }
    set_keys(section, tree, place, true);
    if (section.check && place.genes != nullptr) {
        place.genes->add_check(section.check, tree, place.locate);
    } else if (section.check) {
        section.check(place.object, tree);
    }
}

const Section& section_of(const Domain& domain) {
    const auto* const one_of = std::get_if<Either>(&domain.is);
    return std::get<Section>(one_of != nullptr ? one_of->domains.back().is : domain.is);
}

Key group(std::string name, Domain domain, std::string meaning) {
    auto set = [name, domain, section = section_of(domain)](const Tree& tree, const Place& owner) {
        const Place here = owner.below(path_of(owner.path, name), [](void* object) { return object; });
        if (is_gene(tree)) {
            here.genes->bind(tree, domain, here, {.number = {}, .options = [](auto&&...) {
                                                      return [](void*, std::size_t) {};  // words: the owner as it is
                                                  }});
        } else if (tree.kind == Tree::Kind::map) {
            read_section(section, tree, here);
        }
    };
    return {name, "{}", std::move(domain), std::move(meaning), std::move(set)};
}

}  // namespace finch::config
