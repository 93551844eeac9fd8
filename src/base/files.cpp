#include "finch/base/files.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace finch {
namespace {

namespace fs = std::filesystem;

/// Describes a directory entry that is not a regular file.
std::string no_file(mode_t mode) {
    const char* kind = S_ISDIR(mode)    ? "a folder"
                       : S_ISLNK(mode)  ? "a symbolic link"
                       : S_ISFIFO(mode) ? "a FIFO"
                       : S_ISSOCK(mode) ? "a socket"
                                        : "a device";
    return std::string("it is ") + kind + ", not a file";
}

/// Returns the name in `folder` with the same stem as `name`, otherwise the nearest one, otherwise one that begins with
/// `name`; empty if there is none.
std::string similar_name(const fs::path& folder, const std::string& name) {
    constexpr std::size_t most_names = 10000;  // on a slow file system
    std::vector<std::string> names;
    std::error_code failure;
    fs::directory_iterator entry(folder.empty() ? "." : folder, failure);
    for (; !failure && entry != fs::directory_iterator() && names.size() < most_names; entry.increment(failure)) {
        names.push_back(entry->path().filename().string());
    }
    std::erase(names, name);  // a broken link
    std::sort(names.begin(), names.end());
    const fs::path stem = fs::path(name).stem();
    const auto same =
        std::find_if(names.begin(), names.end(), [&](const std::string& one) { return fs::path(one).stem() == stem; });
    if (same != names.end()) {
        return *same;
    }
    constexpr std::size_t least_letters = 3;
    const auto longer = std::find_if(names.begin(), names.end(), [&](const std::string& one) {
        return name.size() >= least_letters && one.starts_with(name);
    });
    return nearest_word(name, names).value_or(longer != names.end() ? *longer : "");
}

}  // namespace

bool is_storage_failure(int code) noexcept {
    return code != ENOENT && code != ENOTDIR && code != ELOOP && code != ENAMETOOLONG && code != EEXIST;
}

bool is_storage_failure_of_users_path(int code) noexcept {
    const bool is_no_file = code == ENXIO || code == ENODEV || code == EINVAL;  // a socket, for example
    return is_storage_failure(code) && code != EACCES && code != EPERM && code != EROFS && !is_no_file;
}

void check_storage_of(const fs::path& path) {
    const FileDescriptor file(retry([&] { return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); }));
    char byte = 0;
    const bool fails = !file || (retry([&] { return ::read(file.get(), &byte, 1); }) < 0 && errno != EISDIR);
    if (fails && is_storage_failure_of_users_path(errno)) {
        throw_storage("cannot read " + path.string());
    }
}

void throw_storage(const std::string& what) {
    const int code = errno;
    throw StorageError(what + ": " + std::strerror(code));
}

void pause_before_retry(int milliseconds) {
    ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
}

bool is_there(const fs::path& path) {
    struct stat about {};
    if (retry([&] { return ::stat(path.c_str(), &about); }) == 0) {
        return true;
    }
    if (is_storage_failure(errno)) {
        throw_storage("cannot look for " + path.string());
    }
    return false;
}

fs::path similar_beside(const fs::path& path) {
    fs::path similar;
    bool differs = false;
    std::error_code none;
    for (const fs::path& part : path) {
        std::string name = part.string();
        if (!fs::exists(similar / part, none)) {
            name = similar_name(similar, name);
            differs = true;
            if (name.empty()) {
                return {};
            }
        }
        similar /= name;
    }
    return differs ? similar : fs::path();
}

std::string path_hint(const fs::path& path) {
    if (path.string().starts_with("~/")) {
        const char* const home = std::getenv("HOME");  // NOLINT: one thread
        return fmt::format(" (~ is not expanded: write {})",
                           home != nullptr ? home + path.string().substr(1) : std::string("the full path"));
    }
    const fs::path similar = similar_beside(path);
    return similar.empty() ? "" : fmt::format(" (did you mean {}?)", similar.string());
}

std::string why_not(const char* kind, const fs::path& path, const std::error_code& failure) {
    const bool is_absent = failure == std::errc::no_such_file_or_directory || failure == std::errc::not_a_directory;
    return !failure    ? std::string("is no ") + kind
           : is_absent ? std::string("there is no such ") + kind + path_hint(path)
                       : failure.message();
}

std::vector<fs::path> list_folder(const fs::path& folder) {
    std::vector<fs::path> found;
    std::error_code failure;
    fs::directory_iterator entry(folder, failure);
    for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
        found.push_back(entry->path());
    }
    if (failure && found.empty() && !is_there(folder)) {
        return found;
    }
    if (failure) {
        throw StorageError("cannot list " + folder.string() + ": " + failure.message());
    }
    std::sort(found.begin(), found.end());
    return found;
}

FileDescriptor open_regular(const fs::path& path, int flags, std::string& problem, struct stat* about) {
    FileDescriptor file(retry([&] { return ::open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC, 0666); }));
    if (!file) {
        const int code = errno;
        struct stat named {};
        const bool is_known = code != ENOENT && ((flags & O_NOFOLLOW) != 0 ? ::lstat(path.c_str(), &named)
                                                                           : ::stat(path.c_str(), &named)) == 0;
        const bool is_file = !is_known || S_ISREG(named.st_mode);
        problem = is_file ? std::strerror(code) : no_file(named.st_mode);
        errno = is_file ? code : EEXIST;
        return file;
    }
    struct stat found {};
    if (::fstat(file.get(), &found) != 0) {
        const int code = errno;
        problem = std::strerror(code);
        file.reset();
        errno = code;
    } else if (!S_ISREG(found.st_mode)) {
        problem = no_file(found.st_mode);
        file.reset();
        errno = EEXIST;
    }
    if (about != nullptr) {
        *about = found;
    }
    return file;
}

bool write_all(int file, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = retry([&] { return ::write(file, bytes.data(), bytes.size()); });
        if (written < 0) {
            return false;
        }
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return true;
}

std::optional<std::string> read_text(const fs::path& path, std::uintmax_t most_bytes) {
    std::error_code failure;
    const bool is_file = fs::is_regular_file(path, failure);
    const std::uintmax_t bytes = is_file ? fs::file_size(path, failure) : 0;
    std::ostringstream text;
    if (!is_file || failure || bytes > most_bytes) {
        return std::nullopt;
    }
    std::ifstream file(path, std::ios::binary);
    if (!file || (bytes > 0 && !(text << file.rdbuf()))) {
        return std::nullopt;
    }
    return text.str();
}

FileDescriptor make_file(const fs::path& path) {
    const auto make = [&] {
        return FileDescriptor(
            retry([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666); }));
    };
    FileDescriptor file = make();
    if (!file && errno == EEXIST) {
        ::unlink(path.c_str());
        file = make();
    }
    return file;
}

std::string dangling_link(const std::filesystem::path& path) {
    std::filesystem::path place;
    for (const std::filesystem::path& part : path) {
        place /= part;
        std::error_code none;
        if (std::filesystem::is_symlink(place, none) && !std::filesystem::exists(place, none)) {
            return fmt::format("{} is a symbolic link to {}, which is not there", place.string(),
                               std::filesystem::read_symlink(place, none).string());
        }
    }
    return "";
}

}  // namespace finch
