#pragma once

#include "finch/base/fields.hpp"
#include "finch/base/format.hpp"
#include "finch/config/schema.hpp"

#include "genes.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

/// Keys that are bound to the members that they set: one entry says a key's name, its bounds, its meaning and its
/// member; the default is the member's own, and reading follows from the member's type.
namespace finch::config {

/// An object that values are read into.
struct Place {
    void* object = nullptr;
    Locate locate{};  ///< the same object within a copy of the recipe; empty outside of one
    std::string path{};
    Genes* genes = nullptr;    ///< null where none can stand
    bool has_default = false;  ///< the object has its key's default, which it keeps while a gene is not active

    template <class T>
    [[nodiscard]] T& as() const {
        return *static_cast<T*>(object);
    }
    /// A part of this object; `part` finds it: void* → void*.
    template <class Part>
    [[nodiscard]] Place below(std::string part_path, Part part) const {
        Locate found = locate ? Locate([locate = locate, part](void* root) { return part(locate(root)); }) : Locate();
        return {part(object), std::move(found), std::move(part_path), genes, has_default};
    }
};

/// Numbers, which genes can be.
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
template <class T>
inline constexpr bool is_number<std::optional<T>> = is_number<T>;
template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
/// Also what derives from a std::variant.
template <class T>
concept AnyVariant = requires(const T& value) {
    value.valueless_by_exception();
};

/// The word that stands for nothing, or for 0, among other values: `all`, `same`, `classes`; empty if there is none.
[[nodiscard]] std::string word_for_nothing(const Domain& domain);
/// The section that a domain is, or the last of several.
[[nodiscard]] const Section& section_of(const Domain& domain);
/// The domain of a list's elements.
[[nodiscard]] const Domain& element_of(const Domain& domain);
/// The alternative that a complete value names, and its own value.
struct Chosen {
    const Key& key;
    const Tree& value;
};
[[nodiscard]] Chosen chosen(const Variants& variants, const Tree& tree);

/// `{$name: {ALTERNATIVE: …, …}}`: a gene chooses the alternative, the keys of some of which are said.
[[nodiscard]] bool is_chosen_by_gene(const Tree& tree);
/// Reads it; `setter` is that of the variant at `place`.
void read_chosen_by_gene(const Tree& tree, const Domain& domain, const Place& place, const GeneSetter& setter);

/// Sets what `key` sets, from a complete value. Where a gene stands there that may be inactive, sets the default first.
void set_key(const Key& key, const Tree& value, const Place& place);
/// Sets the members of the object at `place` from a complete section, and checks it.
void read_section(const Section& section, const Tree& tree, const Place& place);

template <class T>
void read(const Tree& tree, const Domain& domain, const Place& place);

/// From a complete value without a gene.
template <class T>
void assign(const Tree& tree, const Domain& domain, const Place& place, T& value) {
    if constexpr (EnumWithWords<T>) {
        value = enumerator<T>(tree.text).value();
    } else if constexpr (std::same_as<T, bool>) {
        value = flag(tree).value();
    } else if constexpr (std::integral<T>) {
        value = tree.kind == Tree::Kind::null ? value : static_cast<T>(whole_number(tree).value_or(0));
    } else if constexpr (std::same_as<T, double>) {
        value = real_number(tree).value();
    } else if constexpr (std::same_as<T, std::string>) {
        value = tree.text;
    } else if constexpr (is_optional<T>::value) {
        value.reset();
        if (tree.kind != Tree::Kind::null && tree.text != word_for_nothing(domain)) {
            assign(tree, domain, place, value.emplace());
        }
    } else if constexpr (is_list<T>) {
        const bool list = tree.kind == Tree::Kind::list;
        const bool nothing =
            tree.kind == Tree::Kind::null || (!list && tree.text == word_for_nothing(domain) && !tree.text.empty());
        value.assign(list ? tree.items.size() : nothing ? 0 : 1, typename T::value_type{});
        for (std::size_t i = 0; i < value.size(); ++i) {
            Place element = place.below(list ? path_of(place.path, i) : place.path,
                                        [i](void* items) -> void* { return &(*static_cast<T*>(items))[i]; });
            element.has_default = false;
            read<typename T::value_type>(list ? tree.items[i] : tree, list ? element_of(domain) : domain, element);
        }
    } else if constexpr (AnyVariant<T>) {
        const auto [key, own] = chosen(std::get<Variants>(domain.is), tree);
        set_key(key, own, place);
    } else {
        read_section(section_of(domain), tree, place);
    }
}

/// How a gene of each kind sets a T.
template <class T>
GeneSetter gene_setter() {
    return {.number =
                [](void* object, double number) {
                    T& value = *static_cast<T*>(object);
                    if constexpr (is_optional<T>::value && is_number<T>) {
                        value = static_cast<typename T::value_type>(number);
                    } else if constexpr (is_number<T>) {
                        value = static_cast<T>(number);
                    } else if constexpr (std::same_as<T, std::vector<double>>) {
                        value = {number};
                    }
                },
            .options = [](const std::vector<Tree>& trees, const Domain& domain,
                          const Place& place) -> std::function<void(void*, std::size_t)> {
                std::vector<T> values;
                for (const Tree& tree : trees) {
                    T value = place.as<T>();
                    assign(tree, domain, Place{.object = &value, .path = place.path}, value);
                    values.push_back(std::move(value));
                }
                return [values](void* object, std::size_t option) { *static_cast<T*>(object) = values[option]; };
            }};
}

template <class T>
void read(const Tree& tree, const Domain& domain, const Place& place) {
    if (is_gene(tree)) {
        place.genes->bind(tree, domain, place, gene_setter<T>());
    } else if (is_chosen_by_gene(tree)) {
        read_chosen_by_gene(tree, domain, place, gene_setter<T>());
    } else {
        assign(tree, domain, place, place.as<T>());
    }
}

/// A member's default as YAML.
template <class T>
std::string default_of(const T& value, const Domain& domain) {
    if constexpr (EnumWithWords<T>) {
        return std::string(word(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
        const std::string nothing = word_for_nothing(domain);
        return value == T{} && !nothing.empty() ? nothing : fmt::format("{}", value);
    } else if constexpr (std::same_as<T, std::string>) {
        return value.empty() ? "null" : value;
    } else if constexpr (is_optional<T>::value) {
        const std::string nothing = word_for_nothing(domain);
        if constexpr (is_number<T>) {
            if (value) {
                return fmt::format("{}", *value);
            }
        }
        return nothing.empty() ? "null" : nothing;
    } else if constexpr (std::same_as<T, std::vector<double>>) {
        return value.empty() ? word_for_nothing(domain) : fmt::format("{}", value.front());
    } else if constexpr (AnyVariant<T>) {
        return std::get<Variants>(domain.is).alternatives[value.index()].name;
    } else {
        return "{}";
    }
}

/// A key of an Owner that sets `member`. Its default is that of an Owner{}.
template <class Owner, class T>
Key key(std::string name, T Owner::*member, Domain domain, std::string meaning) {
    std::string fallback = default_of(Owner{}.*member, domain);
    // Shared, since keys are copied with their domains, and blocks of layers hold layers.
    auto set = [name, member, accepted = std::make_shared<const Domain>(domain)](const Tree& tree, const Place& owner) {
        read<T>(tree, *accepted, owner.below(path_of(owner.path, name), [member](void* object) -> void* {
            return &(static_cast<Owner*>(object)->*member);
        }));
    };
    return {name, std::move(fallback), std::move(domain), std::move(meaning), std::move(set)};
}

/// The same for a type that says itself what it takes.
template <class Owner, class T>
Key key(std::string name, T Owner::*member, std::string meaning) {
    if constexpr (std::same_as<T, bool>) {
        return key(std::move(name), member, Domain{Flag{}}, std::move(meaning));
    } else {
        return key(std::move(name), member, Domain{Word{all_words<T>()}}, std::move(meaning));
    }
}

/// Keys of the same owner in a section of their own. A domain that is no section leaves the owner as it is.
Key group(std::string name, Domain domain, std::string meaning);

/// An alternative of a Variant: an Alternative that begins as `preset`.
template <class Variant, class Alternative>
Key alternative(std::string name, Alternative preset, Section section, std::string meaning) {
    auto set = [name, preset, keys = std::make_shared<const Section>(section)](const Tree& tree, const Place& variant) {
        variant.as<Variant>() = preset;
        read_section(*keys, tree, variant.below(path_of(variant.path, name), [](void* object) -> void* {
            return &std::get<Alternative>(*static_cast<Variant*>(object));
        }));
    };
    return {name, "{}", {std::move(section)}, std::move(meaning), std::move(set)};
}

/// A check of an Owner: `check(owner, written)`.
template <class Owner, class Check>
std::function<void(const void*, const Tree&)> check_of(Check check) {
    return [check](const void* object, const Tree& written) { check(*static_cast<const Owner*>(object), written); };
}

}  // namespace finch::config
