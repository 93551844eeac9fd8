#include "finch/base/copy_folder.hpp"

#include "finch/base/files.hpp"
#include "finch/base/handle.hpp"
#include "finch/base/replace.hpp"

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

void copy_one_file(const fs::path& from, const fs::path& to) {
    std::string problem;
    const FileDescriptor source = open_regular(from, O_RDONLY, problem);
    if (!source) {
        throw StorageError("cannot copy " + from.string() + ": " + problem);
    }
    FileDescriptor file = make_file(to);
    if (!file) {
        throw_storage("cannot write " + to.string());
    }
    copy_content(source.get(), file.get(), from, to);
    if (retry([&] { return ::fsync(file.get()); }) != 0 || ::close(file.release()) != 0) {
        throw_storage("cannot sync " + to.string());
    }
}

void remove_tree(const fs::path& path) noexcept {
    std::error_code ignored;
    fs::remove_all(path, ignored);
}

}  // namespace

void copy_folder(const fs::path& from, const fs::path& to) {
    std::error_code none;
    if (!fs::is_directory(from, none)) {
        throw StorageError("cannot copy " + from.string() + ": " + why_not("folder", from, none));
    }
    if (::mkdir(to.c_str(), 0777) != 0) {
        throw_storage("cannot make the folder " + to.string());
    }
    const std::vector<fs::path> content = list_folder(from);
    for (const fs::path& one : content) {
        if (fs::symlink_status(one, none).type() == fs::file_type::directory) {
            copy_folder(one, to / one.filename());
        } else {
            copy_one_file(one, to / one.filename());
        }
    }
    if (list_folder(from) != content) {
        throw StorageError("cannot copy " + from.string() + ": names in it were added or removed during the copy");
    }
    sync_folder(to);
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
