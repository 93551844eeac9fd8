#include "finch/base/replace.hpp"

#include "finch/base/files.hpp"
#include "finch/base/handle.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace finch {
namespace {

namespace fs = std::filesystem;

fs::path with_suffix(const fs::path& path, const char* suffix) {
    return path.string() + suffix;
}

/// Creates the file `path`, fills it with `write` and syncs it. `write` must return false if a write fails.
void write_new(const fs::path& path, const std::function<bool(int)>& write) {
    FileDescriptor file = make_file(path);
    if (!file || !write(file.get())) {
        throw_storage("cannot write " + path.string());
    }
    if (retry([&] { return ::fsync(file.get()); }) != 0) {
        throw_storage("cannot sync " + path.string());
    }
    if (::close(file.release()) != 0) {
        throw_storage("cannot close " + path.string());
    }
}

void rename_file(const fs::path& from, const fs::path& to) {
    if (retry([&] { return ::rename(from.c_str(), to.c_str()); }) != 0) {
        throw_storage("cannot rename " + from.string());
    }
}

void copy_synced(const fs::path& from, const fs::path& to) {
    std::string problem;
    const FileDescriptor source = open_regular(from, O_RDONLY, problem);
    if (!source) {
        throw_storage("cannot read " + from.string());
    }
    write_new(to, [&](int file) {
        std::vector<std::byte> some(std::size_t{1} << 20);
        while (true) {
            const ssize_t size = retry([&] { return ::read(source.get(), some.data(), some.size()); });
            if (size < 0) {
                throw_storage("cannot read " + from.string());
            }
            if (size == 0) {
                return true;
            }
            if (!write_all(file, std::span(some).first(static_cast<std::size_t>(size)))) {
                return false;
            }
        }
    });
}

/// Makes the hard link `to` to the file `from`. Replaces an existing file `to`, which an interrupted write has left.
/// Returns 0, or the number of the error.
int link_anew(const fs::path& from, const fs::path& to) {
    const auto link = [&] { return retry([&] { return ::link(from.c_str(), to.c_str()); }) == 0 ? 0 : errno; };
    const int code = link();
    if (code != EEXIST) {
        return code;
    }
    ::unlink(to.c_str());
    return link();
}

/// Hard-links the file `path`, if it exists, to `path.previous`. Copies the file if the file system has no hard links.
void keep_as_previous(const fs::path& path) {
    const fs::path previous = with_suffix(path, previous_suffix);
    const fs::path beside = unfinished_name(previous);
    const int code = link_anew(path, beside);
    if (code == ENOENT || (code != 0 && !is_there(path))) {
        return;
    }
    if (code != 0) {
        copy_synced(path, beside);
    }
    // rename() does nothing if a kill before the last step of a write has left both names as links to the same file.
    // `beside` then stays until the next write.
    rename_file(beside, previous);
}

}  // namespace

fs::path unfinished_name(const fs::path& path) {
    return with_suffix(path, ".new");
}

std::string set_aside(const fs::path& path) {
    for (int number = 1; number < 10; ++number) {
        const std::string aside = path.string() + damaged_suffix + (number > 1 ? std::to_string(number) : "");
        if (::rename(path.c_str(), aside.c_str()) == 0) {
            return aside;
        }
    }
    return "";
}

void sync_folder(const fs::path& folder) {
    const fs::path named = folder.empty() ? fs::path(".") : folder;
    const FileDescriptor descriptor(retry([&] { return ::open(named.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    // Some file systems cannot sync a folder and return EINVAL. This EINVAL is ignored.
    if (!descriptor || (retry([&] { return ::fsync(descriptor.get()); }) != 0 && errno != EINVAL)) {
        throw_storage("cannot sync " + named.string());
    }
}

void replace_file(const fs::path& path, std::initializer_list<std::span<const std::byte>> parts,
                  const Replacing& replacing) {
    replace_file(
        path,
        [&parts](const fs::path& beside) {
            write_new(beside, [&parts](int file) {
                return std::ranges::all_of(parts,
                                           [file](std::span<const std::byte> part) { return write_all(file, part); });
            });
        },
        replacing);
}

void replace_file(const fs::path& path, const std::function<void(const fs::path&)>& write, const Replacing& replacing) {
    const fs::path beside = unfinished_name(path);
    try {
        write(beside);
        if (replacing.before) {
            replacing.before();
        }
        if (replacing.predecessor == Predecessor::keep) {
            keep_as_previous(path);
        }
        rename_file(beside, path);
    } catch (const std::exception&) {
        ::unlink(beside.c_str());
        throw;
    }
    if (replacing.folder == FolderSync::now) {
        sync_folder(path.parent_path());
    }
}

void copy_to_previous(const fs::path& path) {
    const fs::path previous = with_suffix(path, previous_suffix);
    const fs::path beside = unfinished_name(previous);
    try {
        copy_synced(path, beside);
        rename_file(beside, previous);
    } catch (const std::exception&) {
        ::unlink(beside.c_str());
        throw;
    }
    sync_folder(path.parent_path());
}

}  // namespace finch
