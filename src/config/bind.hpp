#pragma once

#include "finch/base/fields.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
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

/// Configuration keys that are bound to struct members. Each key has a name, bounds, a meaning and the member that it
/// sets. The member's initial value is the key's default, and the member's type determines how a value is read.
namespace finch::config {

/// An object that receives values of the configuration.
struct Target {
    void* object = nullptr;
    Steps steps{};  ///< from the recipe to the object
    std::string path{};
    Genes* genes = nullptr;    ///< null if genes are not accepted
    bool has_default = false;  ///< the object has its key's default and keeps it while a gene is inactive

    template <class T>
    [[nodiscard]] T& as() const {
        return *static_cast<T*>(object);
    }
    /// Returns the part of this object that `step` leads to.
    [[nodiscard]] Target below(std::string part_path, Step step) const;
};

/// Returns the step to the member that begins `offset` bytes after the start of its owner.
[[nodiscard]] Step member_at(std::size_t offset);

/// The functions that set a value of one type from the configuration or from a gene.
struct ValueType {
    /// Sets the value from a YAML tree that complete() returned and that has no gene.
    void (*assign)(const Tree& tree, const Domain& domain, const Target& target) = nullptr;
    void (*set_number)(void* object, double number) = nullptr;
    /// Converts all options of a gene once. Returns a function that sets an object to the option with a given index.
    std::function<void(void* object, std::size_t option)> (*options)(const std::vector<Tree>& options,
                                                                     const Domain& domain,
                                                                     const Target& target) = nullptr;
};

/// Reads a value that complete() returned: a gene, alternatives that a gene chooses, or a plain value.
void read(const ValueType& type, const Tree& tree, const Domain& domain, const Target& target);

/// True for types of numbers, which genes can set.
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
template <class T>
inline constexpr bool is_number<std::optional<T>> = is_number<T>;
template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
/// A std::variant, or a type that derives from one.
template <class T>
concept AnyVariant = requires(const T& value) {
    value.valueless_by_exception();
};

/// Returns the word that means "none" or 0 in a domain, such as `all`, `same`, `classes`; empty if there is none.
[[nodiscard]] std::string null_keyword(const Domain& domain);
/// Returns the section of a domain. If the domain is an Either, its last alternative must be the section.
[[nodiscard]] const Section& section_of(const Domain& domain);
/// Returns the domain of a list's elements.
[[nodiscard]] const Domain& element_of(const Domain& domain);
/// The alternative that a value names, and the value that is given for this alternative.
struct Chosen {
    const Key& key;
    const Tree& value;
};
[[nodiscard]] Chosen chosen(const Variants& variants, const Tree& tree);

/// Sets the member of `key` from a value that complete() returned. If the value is a gene that may be inactive, first
/// sets the key's default.
void set_key(const Key& key, const Tree& value, const Target& target);
/// Sets the members of `target` from a complete section. Runs the section's check now, or registers it with the genes
/// to run for each genome.
void read_section(const Section& section, const Tree& tree, const Target& target);

template <class T>
[[nodiscard]] const ValueType& value_type();

/// Sets `value` from a YAML tree that complete() returned and that has no gene.
template <class T>
void assign(const Tree& tree, const Domain& domain, const Target& target, T& value) {
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
        if (tree.kind == Tree::Kind::map || (tree.kind != Tree::Kind::null && tree.text != null_keyword(domain))) {
            assign(tree, domain, target, value.emplace());
        }
    } else if constexpr (is_list<T>) {
        const bool list = tree.kind == Tree::Kind::list;
        const bool nothing =
            tree.kind == Tree::Kind::null || (!list && tree.text == null_keyword(domain) && !tree.text.empty());
        value.assign(list ? tree.items.size() : nothing ? 0 : 1, typename T::value_type{});
        for (std::size_t i = 0; i < value.size(); ++i) {
            Target element = target.below(
                list ? path_of(target.path, i) : target.path,
                {[](void* items, std::size_t index) -> void* { return &(*static_cast<T*>(items))[index]; }, i});
            element.has_default = false;
            read(value_type<typename T::value_type>(), list ? tree.items[i] : tree, list ? element_of(domain) : domain,
                 element);
        }
    } else if constexpr (AnyVariant<T>) {
        const auto [key, own] = chosen(std::get<Variants>(domain.is), tree);
        set_key(key, own, target);
    } else {
        read_section(section_of(domain), tree, target);
    }
}

template <class T>
void set_number(void* object, double number) {
    T& value = *static_cast<T*>(object);
    if constexpr (is_optional<T>::value && is_number<T>) {
        value = static_cast<typename T::value_type>(number);
    } else if constexpr (is_number<T>) {
        value = static_cast<T>(number);
    } else if constexpr (std::same_as<T, std::vector<double>>) {
        value = {number};
    }
}

template <class T>
std::function<void(void*, std::size_t)> options_of(const std::vector<Tree>& trees, const Domain& domain,
                                                   const Target& target) {
    std::vector<T> values;
    for (const Tree& tree : trees) {
        T value = target.as<T>();
        assign(tree, domain, Target{.object = &value, .path = target.path}, value);
        values.push_back(std::move(value));
    }
    return [values](void* object, std::size_t option) { *static_cast<T*>(object) = values[option]; };
}

template <class T>
const ValueType& value_type() {
    static constexpr ValueType type{
        .assign = [](const Tree& tree, const Domain& domain,
                     const Target& target) { assign(tree, domain, target, target.as<T>()); },
        .set_number = set_number<T>,
        .options = options_of<T>};
    return type;
}

/// Returns a member's default as YAML.
template <class T>
std::string default_of(const T& value, const Domain& domain) {
    if constexpr (EnumWithWords<T>) {
        return std::string(word(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
        const std::string nothing = null_keyword(domain);
        const std::string text =
            std::is_floating_point_v<T> ? number_text(static_cast<double>(value)) : fmt::format("{}", value);
        return value == T{} && !nothing.empty() ? nothing : text;
    } else if constexpr (std::same_as<T, std::string>) {
        return value.empty() ? "null" : value;
    } else if constexpr (is_optional<T>::value) {
        const std::string nothing = null_keyword(domain);
        if constexpr (is_number<T>) {
            if (value) {
                return fmt::format("{}", *value);
            }
        }
        return nothing.empty() ? "null" : nothing;
    } else if constexpr (std::same_as<T, std::vector<double>>) {
        return value.empty() ? null_keyword(domain) : fmt::format("{}", value.front());
    } else if constexpr (AnyVariant<T>) {
        const std::vector<Key>& all = std::get<Variants>(domain.is).alternatives;
        return std::ranges::find(all, value.index(), &Key::variant_index)->name;
    } else {
        return "{}";
    }
}

/// Returns a key that sets a value of `type` at `offset` bytes in its owner.
[[nodiscard]] Key key_at(std::string name, std::size_t offset, const ValueType& type, std::string fallback,
                         Domain domain, std::string meaning);

/// Returns a key that sets `member` of an Owner. The key's default is the member's value in Owner{}.
template <class Owner, class T>
Key key(std::string name, T Owner::*member, Domain domain, std::string meaning) {
    const Owner defaults{};
    const T& value = defaults.*member;
    const auto offset =
        static_cast<std::size_t>(reinterpret_cast<const char*>(&value) - reinterpret_cast<const char*>(&defaults));
    std::string fallback = default_of(value, domain);
    return key_at(std::move(name), offset, value_type<T>(), std::move(fallback), std::move(domain), std::move(meaning));
}

/// Returns a key for a bool or an enum: the type determines the accepted values.
template <class Owner, class T>
Key key(std::string name, T Owner::*member, std::string meaning) {
    if constexpr (std::same_as<T, bool>) {
        return key(std::move(name), member, Domain{Flag{}}, std::move(meaning));
    } else {
        return key(std::move(name), member, Domain{Word{all_words<T>()}}, std::move(meaning));
    }
}

/// Returns a key for a section without a struct of its own: the section's keys set members of the enclosing owner. If
/// the value is not a section, the owner does not change.
Key group(std::string name, Domain domain, std::string meaning);

/// Returns an alternative of the std::variant `Variant`. `begin` assigns the alternative's defaults to the variant;
/// then `part` returns the alternative in the variant.
[[nodiscard]] Key alternative_of(std::string name, std::function<void(void* variant)> begin, Step part, Section section,
                                 std::string meaning);

/// Returns an alternative of the std::variant `Variant`: an Alternative with the initial value `preset`.
template <class Variant, class Alternative>
Key alternative(std::string name, Alternative preset, Section section, std::string meaning) {
    Key made = alternative_of(
        std::move(name), [preset](void* variant) { *static_cast<Variant*>(variant) = preset; },
        {[](void* variant, std::size_t) -> void* { return &std::get<Alternative>(*static_cast<Variant*>(variant)); }},
        std::move(section), std::move(meaning));
    made.variant_index = Variant{std::move(preset)}.index();
    return made;
}

/// Wraps `check(owner, written)` as the check of a section.
template <class Owner, class Check>
std::function<void(const void*, const Tree&)> check_of(Check check) {
    return [check](const void* object, const Tree& written) { check(*static_cast<const Owner*>(object), written); };
}

}  // namespace finch::config
