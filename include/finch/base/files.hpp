#pragma once

#include "finch/base/error.hpp"
#include "finch/base/handle.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <vector>

/// File system calls for long runs on a shared file system. Transient failures are retried. In a folder that other
/// users can write to, a file name cannot make the program block or follow a symbolic link.
namespace finch {

/// A failure of the file system: a full disk, a quota, an I/O error. The message has the file and the system's error
/// text. The data of the run stay intact: the run stops and can be resumed.
class StorageError : public ApiError {
public:
    using ApiError::ApiError;
};

/// Returns true if an error number of a call in a folder that Finch made comes from the storage: a full disk, a file
/// server that has evicted this node, an expired ticket. The same command can succeed later. Returns false for the
/// errors of names alone: ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG and EEXIST.
[[nodiscard]] bool is_storage_failure(int code) noexcept;

/// The same for a path that the user chose. There, EACCES, EPERM and EROFS are mistakes of the user too.
[[nodiscard]] bool is_storage_failure_of_users_path(int code) noexcept;

/// Throws StorageError if `path`, which the user chose, cannot be opened or read because the storage fails. Called
/// before such a path is refused as the user's mistake.
void check_storage_of(const std::filesystem::path& path);

/// Throws StorageError with `what` (a path and the failed action) and the text of the current `errno`.
[[noreturn]] void throw_storage(const std::string& what);

/// Sleeps for `milliseconds` between two attempts.
void pause_before_retry(int milliseconds);

/// Calls `call()`, which returns a negative number and sets errno if it fails. Repeats the call if a signal interrupted
/// it (EINTR) or if the file changed on its server (ESTALE): at most six calls within half a second.
template <class Call>
auto retry(Call call) -> decltype(call()) {
    auto result = call();
    for (int pause = 10; result < 0 && (errno == EINTR || errno == ESTALE) && pause <= 160; pause *= 2) {
        pause_before_retry(errno == EINTR ? 0 : pause);
        result = call();
    }
    return result;
}

/// Returns true if `path` exists, following symbolic links. Returns false for a circle of links and for a name that is
/// too long. Throws StorageError if stat() fails for another reason.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

/// Returns an existing path that was probably meant instead of `path`, which does not exist: each missing part is
/// replaced by a name in its folder with the same stem, a similar spelling, or the missing part as its beginning (3
/// letters or more). Returns an empty path if there is none.
[[nodiscard]] std::filesystem::path similar_beside(const std::filesystem::path& path);

/// Returns a hint for a path that does not exist: " (did you mean data/tex.h5?)", or for a path that begins with ~
/// " (~ is not expanded: write /home/me/tex.h5)". Returns an empty text if there is none.
[[nodiscard]] std::string path_hint(const std::filesystem::path& path);

/// Returns the reason why `path` is not of `kind` (file, folder). `failure` is the error code of
/// std::filesystem::status for the path. Returns "there is no such file" with a hint if the path does not exist, "is no
/// file" if status succeeded, and otherwise the system's error text.
[[nodiscard]] std::string why_not(const char* kind, const std::filesystem::path& path, const std::error_code& failure);

/// Returns the entries of a folder, sorted by name, or nothing if the folder does not exist. Throws StorageError.
[[nodiscard]] std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

/// Opens a regular file. On failure, returns an empty descriptor, sets errno, and writes the reason to `problem`. Never
/// blocks: for a folder, a FIFO, a device or a socket it sets EEXIST. `flags` are the flags of open(2). With
/// O_NOFOLLOW, open_regular() also refuses symbolic links. `about` receives what fstat() returns for the open file.
[[nodiscard]] FileDescriptor open_regular(const std::filesystem::path& path, int flags, std::string& problem,
                                          struct stat* about = nullptr);

/// Writes all of `bytes`. On failure, returns false and sets errno; a part of the bytes may have been written.
[[nodiscard]] bool write_all(int file, std::span<const std::byte> bytes);

/// Returns the content of a file, or nothing if it cannot be read, is not a regular file, or is larger than
/// `most_bytes`.
[[nodiscard]] std::optional<std::string> read_text(const std::filesystem::path& path, std::uintmax_t most_bytes);

/// Creates a new file, open for reading and writing. An existing file or link with the same name is unlinked first. On
/// failure, returns an empty descriptor and sets errno.
[[nodiscard]] FileDescriptor make_file(const std::filesystem::path& path);

/// Returns a message about the first broken symbolic link in `path`, or an empty text if there is none: "scratch is a
/// symbolic link to /scratch/me, which is not there".
[[nodiscard]] std::string dangling_link(const std::filesystem::path& path);

}  // namespace finch
