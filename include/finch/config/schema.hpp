#pragma once

#include "finch/config/tree.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace finch::config {

struct Key;
struct Domain;
struct Target;

/// `null`: nothing.
struct Null {};
/// A whole number in [low, high].
struct Whole {
    std::int64_t low = 0;
    std::int64_t high = 0;
};
/// A number in [low, high], or in (low, high] where `above`.
struct Real {
    double low = 0;
    double high = 0;
    bool above = false;
};
struct Flag {};
/// One of some words.
struct Word {
    std::vector<std::string> words;
};
/// A text; `fits` says which.
struct Text {
    std::string accepts;
    bool (*fits)(const std::string&);
    std::vector<std::string> accepted{};  ///< examples for tests
    std::vector<std::string> refused{};
};
/// Keys with values. `sparse`: keys that are not given stay absent. `check`, if any, throws ConfigError if the
/// object that the keys set cannot be; it is given the section as it was written, for the places.
struct Section {
    std::vector<Key> keys;
    bool sparse = false;
    std::function<void(const void* object, const Tree& written)> check{};
};
/// One of several sections or values by its name: `NAME` alone (all defaults) or `{NAME: value}`.
struct Variants {
    std::vector<Key> alternatives;
};
/// At least `least` values of one domain, at most `most`.
struct List {
    std::vector<Domain> element;  ///< exactly one
    std::size_t least = 1;
    std::size_t most = 1000;
    bool described = false;  ///< the reference says elsewhere what its elements can be
};
/// A map whose names the user chooses.
struct Named {
    std::vector<Domain> element;  ///< exactly one
};
/// The first of several domains that takes a value of this shape; of several sections the one whose first key stands
/// there.
struct Either {
    std::vector<Domain> domains;
};

/// The values that a key accepts.
struct Domain {
    std::variant<Null, Whole, Real, Flag, Word, Text, Section, Variants, List, Named, Either> is;
};

/// Whether something holds from here on, or does not, or as in the section around.
enum class Rule { as_around, yes, no };

/// All that there is to know of a key, in one place: it drives parsing, messages, the effective configuration, the
/// reference that `finch config` prints, and a test of every bound.
struct Key {
    std::string name;
    std::string fallback;  ///< the default, in YAML
    Domain domain;
    std::string meaning;
    /// Sets the member of the object at `owner` from a complete value; see bind.hpp.
    std::function<void(const Tree& value, const Target& owner)> set{};
    Rule genes = Rule::as_around;   ///< whether `$name` may stand for a value
    Rule fixed = Rule::as_around;   ///< whether no start of a run may change it
    std::size_t variant_index = 0;  ///< of an alternative: index() of the std::variant that it sets
    bool is_repeat = false;         ///< with 0 there, no other key of its section has an effect

    [[nodiscard]] Key with_default(std::string yaml) &&;
    [[nodiscard]] Key with_genes(Rule rule) &&;
    [[nodiscard]] Key with_fixed(Rule rule) &&;
    [[nodiscard]] Key as_repeat() &&;
};

/// "a whole number from 1 to 100", "relu, sigmoid or tanh": for messages and for the reference.
[[nodiscard]] std::string accepts(const Domain& domain);
[[nodiscard]] std::vector<std::string> names_of(const std::vector<Key>& keys);

/// Checks `tree` strictly and fills in every default. Where `genes`, a `$name` stays as it is. Throws ConfigError with
/// place, path, what is wrong and what is accepted; for an unknown key the nearest known one.
[[nodiscard]] Tree complete(const Domain& domain, const Tree& tree, const std::string& path, bool genes = false);

/// The value of `key` where the user gives none.
[[nodiscard]] Tree fallback_of(const Key& key, const std::string& place);

/// The part of a complete section that no start of a run may change.
[[nodiscard]] Tree fixed_part(const Section& section, const Tree& tree, bool fixed = false);

/// The commented reference of the keys of `section` with their defaults: YAML that completes to the defaults.
[[nodiscard]] std::string reference(const Section& section);

}  // namespace finch::config
