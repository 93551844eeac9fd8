#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace finch {

/// Returns the number of inserted, removed, replaced or swapped letters between two words (Damerau and Levenshtein).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the word in `known` that is nearest to `word`, or nothing if no word is near enough to be the intended one.
[[nodiscard]] std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> known);

/// Returns " (did you mean 'epochs'?)" for nearest_word(word, known). Returns an empty text if there is none.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> known);

/// Returns the words in one text, with `separator` between them: "a, b, c".
[[nodiscard]] std::string join(std::span<const std::string> words, std::string_view separator = ", ");

/// Returns "1 rank" or "2 ranks", for nouns with a plural in s.
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun);

/// Returns "1 of 200 evaluations"; without a budget (`whole` < 0) "1 evaluation"; beyond it "6 evaluations (budget 5)".
[[nodiscard]] std::string counted_of(std::int64_t count, std::int64_t whole, std::string_view noun);

/// Returns `text` as printable, valid UTF-8. Invalid bytes, control characters (except newline and tab), Unicode line
/// separators and marks of text direction become '?'.
[[nodiscard]] std::string printable(std::string_view text);
/// Returns printable(text) in one line: newlines and tabs also become '?'.
[[nodiscard]] std::string printable_line(std::string_view text);

/// Returns the number of characters in the UTF-8 text `text`.
[[nodiscard]] std::size_t characters_in(std::string_view text);
/// How a cut text ends: with "…" or "...".
enum class Ellipsis { unicode, ascii };
/// Returns `text` in at most `most` characters. A longer text loses its end.
[[nodiscard]] std::string cut(std::string_view text, std::size_t most, Ellipsis ellipsis = Ellipsis::unicode);

/// `text` as one quoted word of a POSIX shell.
[[nodiscard]] std::string quoted_for_shell(const std::string& text);
/// The same, without quotes if every character is harmless: in commands for people.
[[nodiscard]] std::string shell_argument(const std::string& text);

}  // namespace finch
