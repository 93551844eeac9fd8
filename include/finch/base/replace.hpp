#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>

namespace finch {

/// Treatment of a damaged file: set aside by the holder of the run's lock, left as it is by verbs that only read.
enum class OnDamage { set_aside, leave };

/// The suffixes of what replace_file() and set_aside() put beside a file.
inline constexpr const char* previous_suffix = ".previous";
inline constexpr const char* damaged_suffix = ".damaged";

/// Whether the file that is replaced stays as `path.previous`.
enum class Predecessor { keep, drop };

/// Makes or replaces the file `path` by `parts`, one after the other, in one step: written to `path.new`, fsync, the
/// old file hard-linked to `path.previous`, rename, fsync of the folder. A kill at any moment leaves the old file or
/// the new one under `path`, and so does a StorageError, after which nothing lies beside it.
void replace_file(const std::filesystem::path& path, std::initializer_list<std::span<const std::byte>> parts,
                  Predecessor predecessor);

/// The same of a file that `write` makes under the name that it is given, and syncs. `write` may throw anything.
void replace_file(const std::filesystem::path& path, const std::function<void(const std::filesystem::path&)>& write,
                  Predecessor predecessor);

/// Makes or replaces `path.previous` by a copy of the file `path`, in one step. Throws StorageError.
void copy_to_previous(const std::filesystem::path& path);

/// The name under which replace_file() writes; a kill can leave such a file, and the next write takes it over.
[[nodiscard]] std::filesystem::path unfinished_name(const std::filesystem::path& path);

/// Renames whatever has the name `path` to `path.damaged`, or to a number behind it where that cannot be replaced.
/// Returns the new name; an empty one where it stayed.
std::string set_aside(const std::filesystem::path& path);

/// Makes the names in `folder` outlive a dead node. Throws StorageError.
void sync_folder(const std::filesystem::path& folder);

}  // namespace finch
