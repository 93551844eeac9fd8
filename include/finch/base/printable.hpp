#pragma once

#include <string>
#include <string_view>

namespace finch {

/// `text` as valid UTF-8 without control characters other than ends of lines and tabs, and without marks of direction:
/// each that is none of it becomes '?'.
[[nodiscard]] std::string printable(std::string_view text);
/// The same in one line: ends of lines and tabs become '?', too.
[[nodiscard]] std::string printable_line(std::string_view text);

}  // namespace finch
