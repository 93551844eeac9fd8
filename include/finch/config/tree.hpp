#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finch::config {

/// A YAML document as plain data. Each value has its file and line, for error messages.
struct Tree {
    enum class Kind { null, scalar, list, map };
    Kind kind = Kind::null;
    std::string text{};               ///< of a scalar
    bool quoted = false;              ///< a scalar in quotes is a text, whatever it looks like
    std::vector<std::string> keys{};  ///< of a map, in the document's order; keys[i] belongs to items[i]
    std::vector<Tree> items{};        ///< of a list or a map
    std::string place{};              ///< "configs/mnist.yaml:12" (of the key, in a map) or "--set training.epochs"
    std::string gene{};               ///< gene that supplies this value, in words; empty: no gene

    [[nodiscard]] const Tree* find(std::string_view key) const noexcept;
    [[nodiscard]] Tree* find(std::string_view key) noexcept;
    /// Returns the value of a key. Throws Error if the key does not exist.
    [[nodiscard]] const Tree& operator[](std::string_view key) const;
    /// Returns "lr" if this tree is the scalar `$lr`.
    [[nodiscard]] std::optional<std::string> gene_name() const;
};

/// Throws ConfigError with the text "PLACE: PATH: WHAT".
[[noreturn]] void fail(const Tree& at, const std::string& path, const std::string& what);

/// Returns the path of a key ("a.key", or "key" at the top) or of a list item ("a[2]").
[[nodiscard]] std::string path_of(const std::string& parent, std::string_view key);
[[nodiscard]] std::string path_of(const std::string& parent, std::size_t index);

/// Parses one YAML document. Throws ConfigError with `source` and the line for syntax errors, duplicate keys, keys that
/// are not scalars, tags, and a second document.
[[nodiscard]] Tree parse_yaml(const std::string& yaml, const std::string& source);

/// Returns the tree as YAML, each line indented by `indent` columns.
[[nodiscard]] std::string emit(const Tree& tree, std::size_t indent = 0);

/// Applies one setting "path.to.key=value" of --set; the value is YAML. The path of a list item is
/// "model.0.conv.kernel" or "model[0].conv.kernel". Creates missing sections. If the setting gives a single value to a
/// gene with a range or options, sets the gene's `value` and keeps the range or options. Unknown keys are detected
/// later, by complete(). Throws ConfigError.
void apply_setting(Tree& root, const std::string& setting);

/// Converts an unquoted YAML scalar to a number or flag. Returns nothing if the scalar has another form. Whole numbers
/// are decimal ("0x10", "1_000", "010" and "1e3" are refused), numbers are finite decimals, flags are true or false.
[[nodiscard]] std::optional<std::int64_t> whole_number(const Tree& scalar);
[[nodiscard]] std::optional<double> real_number(const Tree& scalar);
/// True if an unquoted scalar is a number outside the range of a double, such as 1e400.
[[nodiscard]] bool is_beyond_numbers(const Tree& scalar);
[[nodiscard]] std::optional<bool> flag(const Tree& scalar);

}  // namespace finch::config
