#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace finch::store {

/// The capabilities of a folder's file system that a run needs.
struct FileSystem {
    std::string path;
    std::string kind;  ///< "ext", "NFS", "Lustre" …; a number if it is not known
    bool writes = false;
    bool locks = false;       ///< fcntl locks; without them a run shows by a heartbeat that it is alive
    bool syncs = false;       ///< fsync of a file and of its folder
    bool hard_links = false;  ///< for `.previous`
    double sync_seconds = 0;  ///< to sync 1 MiB
    std::int64_t free_bytes = 0;
    std::string problem = {};  ///< the system's message about the first failure
    bool operator==(const FileSystem&) const = default;
};

/// Tests all capabilities with a temporary file in `folder`, and removes this file. Does not throw if a capability is
/// missing.
[[nodiscard]] FileSystem try_file_system(const std::filesystem::path& folder);

}  // namespace finch::store
