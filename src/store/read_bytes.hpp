#pragma once

#include "finch/base/bytes.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace finch::store {

/// Reads the first GiB of a file. Adds a message to `problems` if the file is longer, or if it is not a regular file.
/// Throws StorageError if the file cannot be read.
[[nodiscard]] Bytes read_bytes(const std::filesystem::path& path, std::vector<std::string>& problems);

}  // namespace finch::store
