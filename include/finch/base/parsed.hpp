#pragma once

#include <charconv>
#include <optional>
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

}  // namespace finch
