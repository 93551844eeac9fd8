#pragma once

/// Text from values: fmt::format, fmt::join.
#include <fmt/format.h>
#include <fmt/ranges.h>
