#pragma once

#include <filesystem>
#include <functional>

namespace finch {

/// Copies the folder `from` to the new folder `to` and syncs the copy: each file, or the whole file system once if
/// there are more than a few files. File systems that can (Btrfs, XFS, NFS 4.2) share the blocks of both copies until
/// one changes. Permissions and times are copied if possible. Symbolic links to files become files. Throws
/// StorageError, also if `from` contains something other than files, folders and links to files, or if meanwhile names
/// are added or removed or a folder is removed or replaced.
void copy_folder(const std::filesystem::path& from, const std::filesystem::path& to);

/// Creates or replaces the folder `path`. `write` creates `path.new` and syncs its content; the folder is then renamed
/// and its parent is synced. After a kill at any time, `path` is missing or complete. If `write` throws, `path.new` is
/// removed and `path` stays.
void replace_folder(const std::filesystem::path& path, const std::function<void(const std::filesystem::path&)>& write);

/// Renames the folder `path`, if it exists, to `path.new` and removes it, so `path` is never incomplete. Ignores
/// errors.
void remove_folder(const std::filesystem::path& path) noexcept;

}  // namespace finch
