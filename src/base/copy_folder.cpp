#include "finch/base/copy_folder.hpp"

#include "finch/base/files.hpp"
#include "finch/base/handle.hpp"
#include "finch/base/replace.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace finch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_at_once = std::size_t{1} << 30;  // bytes, for the kernel
constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

FileDescriptor open_folder(const fs::path& path) {
    return FileDescriptor(retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
}

/// Copies the rest of `source` to `file`. The kernel copies if it can; otherwise this process does. Throws
/// StorageError.
void copy_content(int source, int file, const fs::path& from, const fs::path& to) {
    ssize_t size = 1;
    while (size > 0) {
        size = retry([&] { return ::copy_file_range(source, nullptr, file, nullptr, most_at_once, 0); });
    }
    std::vector<std::byte> some(buffer_bytes);
    while ((size = retry([&] { return ::read(source, some.data(), some.size()); })) > 0) {
        if (!write_all(file, std::span(some).first(static_cast<std::size_t>(size)))) {
            throw_storage("cannot write " + to.string());
        }
    }
    if (size < 0) {
        throw_storage("cannot read " + from.string());
    }
}

/// Gives an open file or folder the permissions of another one, described by `about`. Some file systems refuse.
void set_mode(int file, const struct stat& about, mode_t more = 0) {
    static_cast<void>(::fchmod(file, (about.st_mode & 0777U) | more));
}

void set_times(int file, const struct stat& about) {
    static_cast<void>(::futimens(file, std::array{about.st_atim, about.st_mtim}.data()));
}

/// Copies the files and folders of one call of copy_folder().
class Copying {
public:
    void copy_files(const fs::path& from, const fs::path& to);

    /// True if the caller must sync the file system, because too many files and folders were copied for a sync of each.
    [[nodiscard]] bool is_to_be_synced() const { return copied_ > most_synced; }

private:
    static constexpr int most_synced = 16;

    void copy_one(const fs::path& from, const fs::path& to);
    void sync(int file, const fs::path& path) {
        if (++copied_ <= most_synced && retry([&] { return ::fsync(file); }) != 0) {
            throw_storage("cannot sync " + path.string());
        }
    }

    int copied_ = 0;
};

void Copying::copy_one(const fs::path& from, const fs::path& to) {
    std::string problem;
    struct stat about {};
    const FileDescriptor source = open_regular(from, O_RDONLY, problem, &about);
    if (!source) {
        throw StorageError("cannot copy " + from.string() + ": " + problem);
    }
    FileDescriptor file = make_file(to);
    if (!file) {
        throw_storage("cannot write " + to.string());
    }
    set_mode(file.get(), about);
    copy_content(source.get(), file.get(), from, to);
    set_times(file.get(), about);
    sync(file.get(), to);
    if (::close(file.release()) != 0) {
        throw_storage("cannot write " + to.string());
    }
}

void Copying::copy_files(const fs::path& from, const fs::path& to) {
    const FileDescriptor source = open_folder(from);  // stays open, so a new folder gets another inode number
    if (!source) {
        const std::error_code failure(errno == ENOTDIR && is_there(from) ? 0 : errno, std::generic_category());
        throw StorageError("cannot copy " + from.string() + ": " + why_not("folder", from, failure));
    }
    const std::vector<fs::path> content = list_folder(from);
    if (::mkdir(to.c_str(), 0777) != 0) {
        throw_storage("cannot make the folder " + to.string());
    }
    std::error_code none;
    for (const fs::path& one : content) {
        const bool is_link = fs::is_symlink(one, none);
        if (is_link && !fs::exists(one, none)) {
            throw StorageError("cannot copy " + one.string() + ": " + dangling_link(one));
        }
        if (is_link && fs::is_directory(one, none)) {
            throw StorageError(
                "cannot copy " + one.string() +
                ": it is a symbolic link to a folder; only files, folders and links to files are copied");
        }
        if (fs::is_directory(one, none)) {
            copy_files(one, to / one.filename());
        } else {
            copy_one(one, to / one.filename());
        }
    }
    struct stat opened {};
    struct stat named {};
    const bool is_known = ::fstat(source.get(), &opened) == 0 && ::stat(from.c_str(), &named) == 0;
    if (!is_known || opened.st_dev != named.st_dev || opened.st_ino != named.st_ino) {
        throw StorageError("cannot copy " + from.string() + ": it was removed or replaced during the copy");
    }
    if (list_folder(from) != content) {
        throw StorageError("cannot copy " + from.string() + ": names in it were added or removed during the copy");
    }
    const FileDescriptor folder = open_folder(to);
    if (!folder) {
        throw_storage("cannot open " + to.string());
    }
    set_mode(folder.get(), opened, S_IRWXU);  // so that Finch can remove the copy
    set_times(folder.get(), opened);
    sync(folder.get(), to);
}

void remove_tree(const fs::path& path) noexcept {
    std::error_code ignored;
    fs::remove_all(path, ignored);
}

}  // namespace

void copy_folder(const fs::path& from, const fs::path& to) {
    Copying copying;
    copying.copy_files(from, to);
    if (copying.is_to_be_synced()) {
        const FileDescriptor folder = open_folder(to);
        if (!folder || retry([&] { return ::syncfs(folder.get()); }) != 0) {
            throw_storage("cannot sync " + to.string());
        }
    }
}

void replace_folder(const fs::path& path, const std::function<void(const fs::path&)>& write) {
    const fs::path beside = unfinished_name(path);
    remove_tree(beside);  // a kill may have left it
    try {
        write(beside);
        remove_tree(path);
        if (retry([&] { return ::rename(beside.c_str(), path.c_str()); }) != 0) {
            throw_storage("cannot rename " + beside.string());
        }
    } catch (const std::exception&) {
        remove_tree(beside);
        throw;
    }
    sync_folder(path.parent_path());
}

void remove_folder(const fs::path& path) noexcept {
    std::error_code ignored;
    const fs::path beside = unfinished_name(path);
    remove_tree(beside);
    fs::rename(path, beside, ignored);
    remove_tree(beside);
}

}  // namespace finch
