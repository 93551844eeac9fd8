#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace finch {

/// An enumeration with a function words_of() that returns the enumerators' words, in the order of the enumerators,
/// which count from 0. words_of() is found by argument-dependent lookup: `constexpr std::array<std::string_view, 2>
/// words_of(Scale) { return {"linear", "log"}; }`.
template <class Enum>
concept EnumWithWords = std::is_enum_v<Enum> && requires(Enum value) {
    words_of(value);
};

template <EnumWithWords Enum>
[[nodiscard]] constexpr std::string_view word(Enum value) {
    return words_of(value).at(static_cast<std::size_t>(value));
}

/// Returns the enumerator with the word `text`, or nothing if there is none.
template <EnumWithWords Enum>
[[nodiscard]] constexpr std::optional<Enum> enumerator(std::string_view text) {
    constexpr auto words = words_of(Enum{});
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == text) {
            return static_cast<Enum>(i);
        }
    }
    return std::nullopt;
}

template <EnumWithWords Enum>
[[nodiscard]] std::vector<std::string> all_words() {
    constexpr auto words = words_of(Enum{});
    return {words.begin(), words.end()};
}

}  // namespace finch
