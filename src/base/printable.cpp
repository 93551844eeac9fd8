#include "finch/base/printable.hpp"

#include <algorithm>
#include <cstddef>

namespace finch {
namespace {

/// The bytes of the UTF-8 character that `text` begins with (RFC 3629); 0 if it begins with none.
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

/// Whether a character of several bytes is shown as nothing, but moves or turns what is shown: C1 controls, ends of
/// lines and paragraphs, marks of direction.
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

}  // namespace finch
