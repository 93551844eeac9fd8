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
struct Target {
    void* object = nullptr;
    Steps steps{};  ///< to the object, from the recipe
    std::string path{};
    Genes* genes = nullptr;    ///< null if none can stand
    bool has_default = false;  ///< the object has its key's default, which it keeps while a gene is not active

    template <class T>
    [[nodiscard]] T& as() const {
        return *static_cast<T*>(object);
    }
    /// The part of this object that `step` leads to.
    [[nodiscard]] Target below(std::string part_path, Step step) const;
};

/// The member that begins so many bytes behind its owner.
[[nodiscard]] Step member_at(std::size_t offset);

/// How a value of a type is read, and how a gene sets it.
struct ValueType {
    /// From a complete value without a gene.
    void (*assign)(const Tree& tree, const Domain& domain, const Target& target) = nullptr;
    void (*set_number)(void* object, double number) = nullptr;
    /// The options of a gene, which are read once: what sets an object to one of them.
    std::function<void(void* object, std::size_t option)> (*options)(const std::vector<Tree>& options,
                                                                     const Domain& domain,
                                                                     const Target& target) = nullptr;
};

/// Reads a complete value: a gene, alternatives that a gene chooses, or a plain one.
void read(const ValueType& type, const Tree& tree, const Domain& domain, const Target& target);

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
[[nodiscard]] std::string null_keyword(const Domain& domain);
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

/// Sets what `key` sets, from a complete value. Where a gene stands there that may be inactive, sets the default first.
void set_key(const Key& key, const Tree& value, const Target& target);
/// Sets the members of `target` from a complete section, and checks it.
void read_section(const Section& section, const Tree& tree, const Target& target);

template <class T>
[[nodiscard]] const ValueType& value_type();

/// From a complete value without a gene.
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
        if (tree.kind != Tree::Kind::null && tree.text != null_keyword(domain)) {
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

/// A member's default as YAML.
template <class T>
std::string default_of(const T& value, const Domain& domain) {
    if constexpr (EnumWithWords<T>) {
        return std::string(word(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
        const std::string nothing = null_keyword(domain);
        return value == T{} && !nothing.empty() ? nothing : fmt::format("{}", value);
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

/// A key of the value of `type` at `offset` bytes in its owner.
[[nodiscard]] Key key_at(std::string name, std::size_t offset, const ValueType& type, std::string fallback,
                         Domain domain, std::string meaning);

/// A key of an Owner that sets `member`. Its default is that of an Owner{}.
template <class Owner, class T>
Key key(std::string name, T Owner::*member, Domain domain, std::string meaning) {
    const Owner defaults{};
    const T& value = defaults.*member;
    const auto offset =
        static_cast<std::size_t>(reinterpret_cast<const char*>(&value) - reinterpret_cast<const char*>(&defaults));
    std::string fallback = default_of(value, domain);
    return key_at(std::move(name), offset, value_type<T>(), std::move(fallback), std::move(domain), std::move(meaning));
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

/// An alternative of a Variant, which `begin` sets to its defaults before `part` finds it.
[[nodiscard]] Key alternative_of(std::string name, std::function<void(void* variant)> begin, Step part, Section section,
                                 std::string meaning);

/// An alternative of a Variant: an Alternative that begins as `preset`.
template <class Variant, class Alternative>
Key alternative(std::string name, Alternative preset, Section section, std::string meaning) {
    Key made = alternative_of(
        std::move(name), [preset](void* variant) { *static_cast<Variant*>(variant) = preset; },
        {[](void* variant, std::size_t) -> void* { return &std::get<Alternative>(*static_cast<Variant*>(variant)); }},
        std::move(section), std::move(meaning));
    made.variant_index = Variant{std::move(preset)}.index();
    return made;
}

/// A check of an Owner: `check(owner, written)`.
template <class Owner, class Check>
std::function<void(const void*, const Tree&)> check_of(Check check) {
    return [check](const void* object, const Tree& written) { check(*static_cast<const Owner*>(object), written); };
}

}  // namespace finch::config
