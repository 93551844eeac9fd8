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

/// The value `null`.
struct Null {};
/// A whole number in [low, high].
struct Whole {
    std::int64_t low = 0;
    std::int64_t high = 0;
};
/// A number in [low, high]; in (low, high] if `above`.
struct Real {
    double low = 0;
    double high = 0;
    bool above = false;
};
struct Flag {};
/// One word of a fixed list.
struct Word {
    std::vector<std::string> words;
};
/// A text for which the function `fits` returns true. `accepts` describes the accepted texts in messages.
struct Text {
    std::string accepts;
    bool (*fits)(const std::string&);
    std::vector<std::string> accepted{};  ///< examples for tests
    std::vector<std::string> refused{};
};
/// A section of the configuration: a YAML map with known keys. If `sparse`, a key that the user does not give stays
/// absent instead of getting its default. `check`, if set, throws ConfigError if the members of `object` do not fit
/// together. `check` also gets the section's YAML, `written`, with the line of each value for messages.
struct Section {
    std::vector<Key> keys;
    bool sparse = false;
    std::function<void(const void* object, const Tree& written)> check{};
};
/// One of several named alternatives, written as `NAME` (with all defaults) or `{NAME: value}`. An alternative is a
/// section or a plain value.
struct Variants {
    std::vector<Key> alternatives;
};
/// A list of `least` to `most` values of one domain.
struct List {
    std::vector<Domain> element;  ///< exactly one
    std::size_t least = 1;
    std::size_t most = 1000;
    bool described = false;  ///< the reference describes the elements elsewhere
};
/// A map with names that the user chooses.
struct Named {
    std::vector<Domain> element;  ///< exactly one
};
/// Several alternative domains. A value belongs to the first domain that accepts its YAML kind. A map belongs to the
/// section that has its first key in the map. If no section matches, the map belongs to the first section.
struct Either {
    std::vector<Domain> domains;
};

/// The values that a key accepts.
struct Domain {
    std::variant<Null, Whole, Real, Flag, Word, Text, Section, Variants, List, Named, Either> is;
};

/// A yes/no property of a key and of all keys below it. as_around: the same as for the enclosing section.
enum class Rule { as_around, yes, no };

/// The complete description of a configuration key. This description drives parsing, messages, the effective
/// configuration, the reference that `finch config` prints, and a test of every bound.
struct Key {
    std::string name;
    std::string fallback;  ///< the default, in YAML
    Domain domain;
    std::string meaning;
    /// Sets a member of the object `owner` from a value that complete() returned; see bind.hpp.
    std::function<void(const Tree& value, const Target& owner)> set{};
    Rule genes = Rule::as_around;   ///< whether `$name` may stand for a value
    Rule fixed = Rule::as_around;   ///< whether later starts of a run must keep the value
    std::size_t variant_index = 0;  ///< of an alternative: index() of the std::variant that it sets
    bool is_repeat = false;         ///< if its value is 0, no other key of its section has an effect

    [[nodiscard]] Key with_default(std::string yaml) &&;
    [[nodiscard]] Key with_genes(Rule rule) &&;
    [[nodiscard]] Key with_fixed(Rule rule) &&;
    [[nodiscard]] Key as_repeat() &&;
};

/// Describes the accepted values for messages and the reference: "a whole number from 1 to 100", "relu, sigmoid or
/// tanh".
[[nodiscard]] std::string accepts(const Domain& domain);
[[nodiscard]] std::vector<std::string> names_of(const std::vector<Key>& keys);

/// Checks `tree` strictly and fills in every default. If `genes` is true, a gene `$name` is accepted and stays as it
/// is. Throws ConfigError with file and line, the key's path, the problem and the accepted values. For an unknown key,
/// the message also names the most similar known key.
[[nodiscard]] Tree complete(const Domain& domain, const Tree& tree, const std::string& path, bool genes = false);

/// Returns the default of `key` as a YAML tree. Messages report `place` as its location.
[[nodiscard]] Tree fallback_of(const Key& key, const std::string& place);

/// Returns the settings of a complete section that later starts of a run must not change.
[[nodiscard]] Tree fixed_part(const Section& section, const Tree& tree, bool fixed = false);

/// Returns the reference of the keys of `section`: YAML with comments and all defaults. complete() accepts this YAML.
[[nodiscard]] std::string reference(const Section& section);

}  // namespace finch::config
