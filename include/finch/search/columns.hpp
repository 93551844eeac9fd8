#pragma once

#include <string>
#include <vector>

namespace finch::search {

/// Columns of /individuals and of CSV, also of older versions, that are not genes: names that no gene may have.
[[nodiscard]] const std::vector<std::string>& reserved_columns();

}  // namespace finch::search
