#pragma once

#include "finch/doctor/problems.hpp"

namespace finch::doctor {

/// What is printed: the facts, then the problems. A pure function.
[[nodiscard]] std::string describe(const Facts& facts, const std::vector<Problem>& problems);

}  // namespace finch::doctor
