#pragma once

#include <cstdint>

namespace finch::store {

inline constexpr const char* archive_format = "finch population";
inline constexpr std::int64_t archive_version = 1;

}  // namespace finch::store
