#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace finch::store {

/// Capabilities of a folder's file system that a run needs.
struct FileSystem {
    std::string path;
    std::string kind;  ///< "ext", "NFS", "Lustre" …; a number where it is none that is known
    bool writes = false;
    bool locks = false;       ///< fcntl locks; without them a run tells that it lives by a heartbeat
    bool syncs = false;       ///< fsync of a file and of its folder
    bool hard_links = false;  ///< for `.previous`
    double sync_seconds = 0;  ///< of 1 MiB
    std::int64_t free_bytes = 0;
    std::string problem = {};  ///< the system's words on what failed first
    bool operator==(const FileSystem&) const = default;
};

/// Tries all of it with a file of its own name in `folder`, and takes it away. Throws nothing for what does not work.
[[nodiscard]] FileSystem try_file_system(const std::filesystem::path& folder);

}  // namespace finch::store
