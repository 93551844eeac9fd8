#pragma once

#include "finch/base/bytes.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace finch::store {

/// What a file holds, of its first GiB; where there is more, or where it is no file at all, a line in `problems`.
/// Throws StorageError if it cannot be read.
[[nodiscard]] Bytes read_bytes(const std::filesystem::path& path, std::vector<std::string>& problems);

}  // namespace finch::store
