#pragma once

#include "finch/base/format.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace finch {

/// Parses the whole of `text` with std::from_chars. Returns nothing if `text` is not a number or exceeds the range of
/// Number.
template <class Number>
[[nodiscard]] std::optional<Number> parsed(std::string_view text) {
    Number number{};
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    return error == std::errc{} && end == last ? std::optional(number) : std::nullopt;
}

/// Returns the shortest text that parses to the same bits: "0.00001", "1.0e-07", "1.0e+20". An exponent has a sign, and
/// a point before it: YAML 1.1 (PyYAML) reads 1e-07 as a word.
[[nodiscard]] inline std::string number_text(double value) {
    std::string text = fmt::format("{}", value);
    const std::size_t exponent = text.find('e');
    if (exponent != std::string::npos && 1e-6 <= std::abs(value) && std::abs(value) < 1) {
        std::array<char, 32> digits{};
        return {digits.data(), std::to_chars(digits.begin(), digits.end(), value, std::chars_format::fixed).ptr};
    }
    return exponent == std::string::npos || text.find('.') != std::string::npos ? text : text.insert(exponent, ".0");
}

}  // namespace finch
