#pragma once

#include <filesystem>
#include <string>

namespace finch {

/// "scratch is a symbolic link to /scratch/me, which is not there": the first link on the way to `path` that leads
/// nowhere. Empty if there is none.
[[nodiscard]] std::string dangling_link(const std::filesystem::path& path);

}  // namespace finch
