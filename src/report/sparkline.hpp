#pragma once

#include <span>
#include <string>

namespace finch::report {

/// One bar of eight heights for each value, UTF-8: the lowest value has the lowest. Of positive values that span more
/// than a factor of 20 the logarithms; what is not finite is a cross. Of more than `width` values every so manieth.
[[nodiscard]] std::string sparkline(std::span<const double> values, std::size_t width = 80);

}  // namespace finch::report
