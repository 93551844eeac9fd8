#pragma once

#include "finch/doctor/problems.hpp"

namespace finch::doctor {

/// The printed text: the facts, then the problems. A pure function.
[[nodiscard]] std::string describe(const Facts& facts, const std::vector<Problem>& problems);

/// 13020 → "13.2"; "none" of 0.
[[nodiscard]] std::string cuda_version(int version);

}  // namespace finch::doctor
