#include "finch/base/words.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace finch {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    const std::size_t columns = b.size() + 1;
    std::vector<std::size_t> d((a.size() + 1) * columns);
    const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return d[i * columns + j]; };
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                at(i, j) = i + j;
                continue;
            }
            const std::size_t replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
            at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
            }
        }
    }
    return d.back();
}

std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> known) {
    const std::string* nearest = nullptr;
    std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string& candidate : known) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < least && distance < candidate.size()) {
            least = distance;
            nearest = &candidate;
        }
    }
    return nearest == nullptr ? std::nullopt : std::optional(*nearest);
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
    const auto nearest = nearest_word(word, known);
    return nearest ? " (did you mean '" + *nearest + "'?)" : "";
}

std::string join(std::span<const std::string> words, std::string_view separator) {
    std::string joined;
    for (const std::string& word : words) {
        if (!joined.empty()) {
            joined += separator;
        }
        joined += word;
    }
    return joined;
}

std::string counted(std::int64_t count, std::string_view noun) {
    return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string counted_of(std::int64_t count, std::int64_t whole, std::string_view noun) {
    if (whole < 0) {
        return counted(count, noun);
    }
    return count > whole ? counted(count, noun) + " (budget " + std::to_string(whole) + ")"
                         : std::to_string(count) + " of " + counted(whole, noun);
}

namespace {

/// Returns the length in bytes of the UTF-8 character at the start of `text` (RFC 3629); 0 if it is not valid.
std::size_t first_character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const unsigned first = byte(0);
    if (first < 0x80) {
        return 1;
    }
    const std::size_t length = first < 0xC2 || first > 0xF4 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    const bool is_too_long = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
    const bool is_surrogate = first == 0xED && byte(1) > 0x9F;
    const bool is_too_large = first == 0xF4 && byte(1) > 0x8F;
    return is_too_long || is_surrogate || is_too_large ? 0 : length;
}

/// Returns true if a multi-byte character is invisible but changes the layout: C1 controls, line and paragraph
/// separators, marks of text direction.
bool is_hidden(std::string_view character) {
    return (character.size() == 2 && character[0] == '\xC2' && static_cast<unsigned char>(character[1]) < 0xA0) ||
           (character >= "\u2028" && character <= "\u202E") || (character >= "\u2066" && character <= "\u2069");
}

}  // namespace

std::string printable(std::string_view text) {
    std::string shown;
    while (!text.empty()) {
        const std::size_t length = first_character(text);
        const char first = text.front();
        const bool is_control = length == 1 && (first < ' ' || first == 0x7F) && first != '\n' && first != '\t';
        const std::string_view character = text.substr(0, length);
        shown += length == 0 || is_control || is_hidden(character) ? "?" : character;
        text.remove_prefix(std::max<std::size_t>(1, length));
    }
    return shown;
}

std::string printable_line(std::string_view text) {
    std::string line = printable(text);
    std::replace_if(
        line.begin(), line.end(), [](char character) { return character == '\n' || character == '\t'; }, '?');
    return line;
}

std::size_t characters_in(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::string cut(std::string_view text, std::size_t most, Ellipsis ellipsis) {
    if (characters_in(text) <= most) {
        return std::string(text);
    }
    const std::string_view dots = ellipsis == Ellipsis::unicode ? "…" : "...";
    const std::size_t kept = most - std::min(most, characters_in(dots));
    std::size_t end = 0;
    for (std::size_t seen = 0; end < text.size(); ++end) {
        const bool begins = (text[end] & 0xC0) != 0x80;
        if (begins && seen++ == kept) {
            break;
        }
    }
    return std::string(text.substr(0, end)) + (characters_in(dots) <= most ? std::string(dots) : "");
}

std::string quoted_for_shell(const std::string& text) {
    std::string quoted = "'";
    for (const char letter : text) {
        quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    }
    return quoted + "'";
}

std::string shell_argument(const std::string& text) {
    static constexpr const char* harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:%@";
    return !text.empty() && text.find_first_not_of(harmless) == std::string::npos ? text : quoted_for_shell(text);
}

}  // namespace finch
