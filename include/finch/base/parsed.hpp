#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace finch {

/// The number that all of `text` is, as std::from_chars reads it; nothing if it is none or a Number cannot hold it.
template <class Number>
[[nodiscard]] std::optional<Number> parsed(std::string_view text) {
    Number number{};
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    return error == std::errc{} && end == last ? std::optional(number) : std::nullopt;
}

}  // namespace finch
