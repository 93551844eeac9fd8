#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finch::config {

/// A YAML document as plain data that remembers where each value stands, so that a message can say so.
struct Tree {
    enum class Kind { null, scalar, list, map };
    Kind kind = Kind::null;
    std::string text{};               ///< of a scalar
    bool quoted = false;              ///< a scalar in quotes is a text, whatever it looks like
    std::vector<std::string> keys{};  ///< of a map, in the document's order; keys[i] belongs to items[i]
    std::vector<Tree> items{};        ///< of a list or a map
    std::string place{};              ///< "configs/mnist.yaml:12" (of the key, in a map) or "--set training.epochs"
    std::string gene{};               ///< whose value this is, in words; empty if it stands there itself

    [[nodiscard]] const Tree* find(std::string_view key) const noexcept;
    [[nodiscard]] Tree* find(std::string_view key) noexcept;
    /// The value of a key that is known to be there.
    [[nodiscard]] const Tree& operator[](std::string_view key) const;
    /// "lr" where this is the scalar `$lr`.
    [[nodiscard]] std::optional<std::string> gene_name() const;
};

/// Throws ConfigError "PLACE: PATH: WHAT".
[[noreturn]] void fail(const Tree& at, const std::string& path, const std::string& what);

/// "a.key", or "key" at the top; "a[2]".
[[nodiscard]] std::string path_of(const std::string& parent, std::string_view key);
[[nodiscard]] std::string path_of(const std::string& parent, std::size_t index);

/// Parses one YAML document. Throws ConfigError with `source` and the line: syntax errors, duplicate keys, keys that
/// are no scalars, tags, a second document.
[[nodiscard]] Tree parse_yaml(const std::string& yaml, const std::string& source);

/// The tree as YAML, each line indented by `indent` columns.
[[nodiscard]] std::string emit(const Tree& tree, std::size_t indent = 0);

/// Applies "path.to.key=value" (list items as "model.0.conv.kernel" or "model[0].conv.kernel"), the value in YAML.
/// Makes sections that are not there yet. If a gene that is searched gets one value, this becomes its `value`, beside
/// the range or options that it is searched in. Unknown keys are found when the configuration is checked. Throws
/// ConfigError.
void apply_setting(Tree& root, const std::string& setting);

/// A plain scalar's value, as strict as the messages say: whole numbers are decimal ("0x10", "1_000", "010" and "1e3"
/// are none), numbers are finite decimals, flags are true or false.
[[nodiscard]] std::optional<std::int64_t> whole_number(const Tree& scalar);
[[nodiscard]] std::optional<double> real_number(const Tree& scalar);
/// Whether a plain scalar is written as a number that is too large or too small for one: 1e400.
[[nodiscard]] bool is_beyond_numbers(const Tree& scalar);
[[nodiscard]] std::optional<bool> flag(const Tree& scalar);

}  // namespace finch::config
