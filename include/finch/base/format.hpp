#pragma once

/// Formatting of values as text: fmt::format and fmt::join.
#include <fmt/format.h>
#include <fmt/ranges.h>
