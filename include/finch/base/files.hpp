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
#include <system_error>
#include <vector>

/// Calls of the file system as a long run on a shared one needs them: what passes by itself is tried again, and no name
/// in a folder that others write to makes the program follow a link or wait.
namespace finch {

/// The file system refused: a full disk, a quota, an I/O error. The message has the file and the system's error
/// text. Nothing is wrong with the run: it stops, to be resumed.
class StorageError : public ApiError {
public:
    using ApiError::ApiError;
};

/// Whether an error number means a full disk, a quota or a failing server: not the user's fault, and the same
/// command works later. (EROFS is none of them: where a run is opened, the mount is the user's to mend.)
[[nodiscard]] bool is_storage_failure(int code) noexcept;

/// Throws StorageError with `what` (a path and what was tried) and the text of the current `errno`.
[[noreturn]] void throw_storage(const std::string& what);

/// A pause of `milliseconds` between two tries.
void pause_before_retry(int milliseconds);

/// `call()`, which returns a negative number where it failed and leaves the reason in errno, and once more where it was
/// interrupted, or where a file server changed under an open name (ESTALE): six times at most, within half a second.
template <class Call>
auto retry(Call call) -> decltype(call()) {
    auto result = call();
    for (int pause = 10; result < 0 && (errno == EINTR || errno == ESTALE) && pause <= 160; pause *= 2) {
        pause_before_retry(errno == EINTR ? 0 : pause);
        result = call();
    }
    return result;
}

/// Whether there is something under the name, links followed: nothing is under links in a circle, or a name that is too
/// long. Throws StorageError if that cannot be told.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

/// Why a path is not of `kind` (file, folder), after `failure` of std::filesystem::status: "there is no such file", "is
/// no file" if that did not fail, else the system's words.
[[nodiscard]] std::string why_not(const char* kind, const std::error_code& failure);

/// The entries of a folder, by name; empty if there is no such folder. Throws StorageError.
[[nodiscard]] std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

/// Opens a file. None where that fails, with the reason in errno and, in words, in `problem`; EINVAL where it is a
/// folder, a FIFO, a device or a socket, which it never waits for. `flags` are those of open(2): O_NOFOLLOW among them
/// refuses links too.
[[nodiscard]] FileDescriptor open_regular(const std::filesystem::path& path, int flags, std::string& problem);

/// Writes all of `bytes`. False, with the reason in errno, where that fails; a part may be written then.
[[nodiscard]] bool write_all(int file, std::span<const std::byte> bytes);

/// The content of a file; nothing if it cannot be read, is no file, or is larger than `most_bytes`.
[[nodiscard]] std::optional<std::string> read_text(const std::filesystem::path& path, std::uintmax_t most_bytes);

/// A new file, open to read and write; what had the name is gone, and a link is not followed. None where that fails,
/// with the reason in errno.
[[nodiscard]] FileDescriptor make_file(const std::filesystem::path& path);

/// "scratch is a symbolic link to /scratch/me, which is not there": the first link on the way to `path` that leads
/// nowhere. Empty if there is none.
[[nodiscard]] std::string dangling_link(const std::filesystem::path& path);

}  // namespace finch
