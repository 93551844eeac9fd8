#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>

namespace finch {

/// The treatment of a damaged file. The process that holds the run's lock renames a damaged file (set_aside). Commands
/// that only read the run do not change the file (leave).
enum class OnDamage { set_aside, leave };

/// The suffixes of files that replace_file() and set_aside() create next to a file.
inline constexpr const char* previous_suffix = ".previous";
inline constexpr const char* damaged_suffix = ".damaged";

/// The treatment of the file that is replaced. With `keep`, the old file remains as `path.previous`.
enum class Predecessor { keep, drop };

/// The treatment of the folder of a replaced file. Without a sync, a crash of the node can bring back the old file.
enum class FolderSync { now, none };

/// The way in which replace_file() replaces a file. `before` is called when the new file is complete; if it throws, the
/// old file stays.
struct Replacing {
    Predecessor predecessor = Predecessor::keep;
    FolderSync folder = FolderSync::now;
    std::function<void()> before = {};
};

/// Creates or atomically replaces the file `path` with the concatenated `parts`. Writes `path.new`, calls fsync,
/// hard-links the old file to `path.previous`, renames `path.new` to `path`, and syncs the folder. After a kill at any
/// time, a crash of the node or a StorageError, `path` is the complete old file or the complete new file. A
/// StorageError leaves no `path.new` behind.
void replace_file(const std::filesystem::path& path, std::initializer_list<std::span<const std::byte>> parts,
                  const Replacing& replacing = {});

/// Replaces a file in the same way, but `write` creates the new file under the name that it receives, and syncs it.
/// `write` may throw any std::exception.
void replace_file(const std::filesystem::path& path, const std::function<void(const std::filesystem::path&)>& write,
                  const Replacing& replacing = {});

/// Creates or atomically replaces `path.previous` with a copy of the file `path`. Throws StorageError.
void copy_to_previous(const std::filesystem::path& path);

/// Returns the name of the temporary file of replace_file(). A kill can leave the temporary file behind; the next write
/// replaces it.
[[nodiscard]] std::filesystem::path unfinished_name(const std::filesystem::path& path);

/// Renames `path` to `path.damaged`, or to a name with a number appended if `path.damaged` cannot be replaced. Returns
/// the new name, or an empty text if no rename succeeded.
std::string set_aside(const std::filesystem::path& path);

/// Syncs `folder`, so that the names in it survive a crash of the node. Throws StorageError.
void sync_folder(const std::filesystem::path& folder);

}  // namespace finch
