#include "finch/hdf5/file.hpp"

#include "finch/base/bytes.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <unistd.h>

namespace finch::hdf5 {
namespace {

constexpr hsize_t user_block_bytes = 512;
constexpr std::array<char, 8> seal_magic{'F', 'I', 'N', 'C', 'H', 'H', '5', '\n'};

/// The beginning of the user block: what the rest of the file must be.
struct Seal {
    std::array<char, 8> magic{};
    std::uint64_t bytes = 0;  ///< of the whole file
    std::uint32_t crc = 0;    ///< CRC-32C of everything behind the user block
    std::uint32_t reserved = 0;
};

/// Once per process: no file locks, which shared file systems refuse, and no error stacks on standard error.
void prepare() {
    static const bool done = [] {
        ::setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
        H5open();
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
        return true;
    }();
    static_cast<void>(done);
}

/// H5Ewalk2's callback: entry 0 of an upward walk is the innermost.
herr_t keep_innermost(unsigned number, const H5E_error2_t* error, void* text) {
    if (number == 0 && error->desc != nullptr) {
        *static_cast<std::string*>(text) = error->desc;
    }
    return 0;
}

FileDescriptor open_raw(const std::filesystem::path& path, int flags) {
    FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0644));
    if (!file) {
        throw_errno(path.string());
    }
    return file;
}

/// The seal that the file as it stands would need.
Seal measure(int file, const std::filesystem::path& path) {
    Seal seal{seal_magic, user_block_bytes, 0, 0};
    std::vector<std::byte> chunk(std::size_t{1} << 20);
    while (true) {
        const ssize_t got = ::pread(file, chunk.data(), chunk.size(), static_cast<off_t>(seal.bytes));
        if (got < 0) {
            throw_errno("read " + path.string());
        }
        if (got == 0) {
            return seal;
        }
        seal.crc = crc32c(std::span(chunk).first(static_cast<std::size_t>(got)), seal.crc);
        seal.bytes += static_cast<std::uint64_t>(got);
    }
}

void seal_and_sync(const std::filesystem::path& path) {
    const FileDescriptor file = open_raw(path, O_RDWR);
    const Seal seal = measure(file.get(), path);
    if (::pwrite(file.get(), &seal, sizeof seal, 0) != static_cast<ssize_t>(sizeof seal) || ::fsync(file.get()) != 0) {
        throw_errno("write " + path.string());
    }
}

void sync_folder(const std::filesystem::path& folder) {
    const FileDescriptor descriptor = open_raw(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
    ::fsync(descriptor.get());  // some file systems cannot; the rename stands all the same
}

/// Fills a fresh file at `path` and closes it; every failure of HDF5 on the way throws.
void create_and_fill(const std::filesystem::path& path, const std::function<void(hid_t)>& fill) {
    const Hid creation(check(H5Pcreate(H5P_FILE_CREATE), "H5Pcreate"));
    check(H5Pset_userblock(creation.get(), user_block_bytes), "H5Pset_userblock");
    const Hid access(check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"));
    check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "H5Pset_fclose_degree");
    Hid file(check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), "create " + path.string()));
    fill(file.get());
    check(H5Fflush(file.get(), H5F_SCOPE_LOCAL), "flush " + path.string());
    check(H5Fclose(file.release()), "close " + path.string());
}

std::filesystem::path with_suffix(const std::filesystem::path& path, const char* suffix) {
    return path.string() + suffix;
}

}  // namespace

void HidTraits::destroy(type id) noexcept {
    switch (H5Iget_type(id)) {
        case H5I_FILE:
            H5Fclose(id);
            break;
        case H5I_GROUP:
            H5Gclose(id);
            break;
        case H5I_DATASET:
            H5Dclose(id);
            break;
        case H5I_DATASPACE:
            H5Sclose(id);
            break;
        case H5I_DATATYPE:
            H5Tclose(id);
            break;
        case H5I_ATTR:
            H5Aclose(id);
            break;
        case H5I_GENPROP_LST:
            H5Pclose(id);
            break;
        default:
            break;
    }
}

hid_t check(hid_t result, const std::string& what) {
    if (result < 0) {
        std::string reason;
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &reason);
        throw ApiError(fmt::format("HDF5: {}: {}", what, reason.empty() ? "failed" : reason));
    }
    return result;
}

void write_file(const std::filesystem::path& path, const std::function<void(hid_t file)>& fill) {
    prepare();
    const std::filesystem::path beside = with_suffix(path, ".new");
    const std::filesystem::path previous = with_suffix(path, ".previous");
    std::error_code ignored;
    try {
        create_and_fill(beside, fill);
        seal_and_sync(beside);
    } catch (const Error&) {
        std::filesystem::remove(beside, ignored);
        throw;
    }
    std::filesystem::remove(previous, ignored);
    std::filesystem::create_hard_link(path, previous,
                                      ignored);  // none at the first writing, or on a system without links
    if (std::rename(beside.c_str(), path.c_str()) != 0) {
        throw_errno("rename " + beside.string());
    }
    sync_folder(path.parent_path());
}

Hid open_file(const std::filesystem::path& path) {
    prepare();
    Seal seal;
    try {
        const FileDescriptor file = open_raw(path, O_RDONLY);
        if (::pread(file.get(), &seal, sizeof seal, 0) != static_cast<ssize_t>(sizeof seal) ||
            seal.magic != seal_magic) {
            throw FileError(fmt::format("{}: this is no file of Finch's, or its beginning is lost", path.string()));
        }
        const Seal now = measure(file.get(), path);
        if (now.bytes != seal.bytes) {
            throw FileError(
                fmt::format("{}: {} bytes long where {} were written", path.string(), now.bytes, seal.bytes));
        }
        if (now.crc != seal.crc) {
            throw FileError(fmt::format("{}: the checksum does not fit: the file is damaged", path.string()));
        }
    } catch (const ApiError& error) {
        throw FileError(error.what());
    }
    return open_plain_file(path);
}

Hid open_plain_file(const std::filesystem::path& path) {
    prepare();
    Hid file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    if (!file) {
        throw FileError(fmt::format("{}: HDF5 cannot open it", path.string()));
    }
    return file;
}

std::optional<Hid> open_file_or_previous(const std::filesystem::path& path, std::vector<std::string>& problems) {
    for (const std::filesystem::path& candidate : {path, with_suffix(path, ".previous")}) {
        std::error_code ignored;
        if (!std::filesystem::exists(candidate, ignored)) {
            continue;
        }
        try {
            return open_file(candidate);
        } catch (const FileError& error) {
            problems.push_back(error.what());
            std::filesystem::rename(candidate, with_suffix(candidate, ".damaged"), ignored);
        }
    }
    return std::nullopt;
}

}  // namespace finch::hdf5
