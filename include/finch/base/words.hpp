#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace finch {

/// The number of inserted, removed, replaced or swapped letters between two words (Damerau and Levenshtein).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The word nearest to `word` among `known`, if one is near enough to be what was meant.
[[nodiscard]] std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> known);

/// "a, b, c".
[[nodiscard]] std::string join(std::span<const std::string> words, std::string_view separator = ", ");

/// "1 rank", "2 ranks"; for nouns whose plural has an s.
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun);

/// "1 of 200 evaluations"; "1 evaluation" where there is no `whole`, which is negative then.
[[nodiscard]] std::string counted_of(std::int64_t count, std::int64_t whole, std::string_view noun);

/// `text` as valid UTF-8 without control characters other than ends of lines and tabs, and without marks of direction:
/// each that is none of it becomes '?'.
[[nodiscard]] std::string printable(std::string_view text);
/// The same in one line: ends of lines and tabs become '?', too.
[[nodiscard]] std::string printable_line(std::string_view text);

}  // namespace finch
