// Operations on whole files: the user block with its checksum, atomic writing, and the check before opening.
#include "finch/hdf5/file.hpp"

#include "finch/base/bytes.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/replace.hpp"

#include "failed_close.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <span>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace finch::hdf5 {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t user_block_bytes = 512;  // the smallest that HDF5 allows
constexpr std::array<char, 8> magic{'F', 'I', 'N', 'C', 'H', '\r', '\n', '\x1a'};
constexpr std::uint32_t layout_version = 1;
constexpr std::size_t growth_bytes = std::size_t{1} << 20;
constexpr std::size_t chunk_bytes = std::size_t{1} << 18;
constexpr std::size_t most_bytes_in_memory = std::size_t{4} << 20;  // of a file that is read

using UserBlock = std::array<std::byte, user_block_bytes>;

/// The data at the start of the user block: an identification, the version, the checksum and the size. The rest of the
/// user block is zeros.
struct Seal {
    std::array<char, 8> magic;
    std::uint32_t version;
    std::uint32_t crc;  ///< CRC-32C of the whole file, computed with 0 in this place
    std::uint64_t rest_bytes;
};
static_assert(sizeof(Seal) == 24);

UserBlock block_of(const Seal& seal) {
    UserBlock block{};
    std::memcpy(block.data(), &seal, sizeof seal);
    return block;
}

UserBlock sealed(std::span<const std::byte> rest) {
    Seal seal{magic, layout_version, 0, rest.size()};
    seal.crc = crc32c(rest, crc32c(block_of(seal)));
    return block_of(seal);
}

/// Makes a file with room for a user block, with the file driver in `access`.
Hid make_file(const fs::path& path, unsigned how, hid_t access) {
    // Selects file formats that HDF5 1.8 and later can read. Older formats have half as much room for a row's type.
    check(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST), "H5Pset_libver_bounds");
    const Hid creation(check(H5Pcreate(H5P_FILE_CREATE), "H5Pcreate"));
    check(H5Pset_userblock(creation.get(), user_block_bytes), "H5Pset_userblock");
    return Hid(check(H5Fcreate(path.c_str(), how, creation.get(), access), "H5Fcreate " + path.string()));
}

/// Returns a name for a file in memory that no file on disk can have: HDF5 would read that file, or refuse the name.
/// HDF5 takes two open files in memory with the same name for one file, so `number` differs if the content does.
std::string name_in_memory(const fs::path& path, std::uint32_t number) {
    return fmt::format("/dev/null/{}/{}", number, path.string());
}

/// Makes an HDF5 file that exists only in memory.
Hid file_in_memory(const fs::path& path) {
    const Hid access(check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"));
    check(H5Pset_fapl_core(access.get(), growth_bytes, false), "H5Pset_fapl_core");
    return make_file(name_in_memory(path, 0), H5F_ACC_TRUNC, access.get());
}

/// Returns the bytes of the open file, valid while it is open. The first user_block_bytes belong to the caller.
/// H5Fget_file_image is no alternative: it returns a copy with cleared flags, and with a wrong checksum over these
/// flags.
std::span<std::byte> bytes_of(hid_t file) {
    check(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush");
    // The number of bytes that HDF5 uses; the allocated memory is a multiple of growth_bytes.
    const auto size = static_cast<std::size_t>(check(H5Fget_file_image(file, nullptr, 0), "H5Fget_file_image"));
    void* memory = nullptr;
    check(H5Fget_vfd_handle(file, H5P_DEFAULT, &memory), "H5Fget_vfd_handle");
    return {*static_cast<std::byte* const*>(memory), user_block_bytes + size};
}

/// Makes a new HDF5 file on disk. Removes an existing file at `path`, and follows no symbolic link.
Hid new_file(const fs::path& path) {
    const Hid access(check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"));
    ::unlink(path.c_str());
    return make_file(path, H5F_ACC_EXCL, access.get());
}

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
    throw FileError(path.string() + ": " + why);
}

/// Reads up to `out.size()` bytes; fewer only at the file's end.
std::size_t read_some(int file, std::span<std::byte> out, const fs::path& path) {
    std::size_t have = 0;
    while (have < out.size()) {
        const ssize_t got = retry([&] { return ::read(file, out.data() + have, out.size() - have); });
        if (got < 0) {
            throw_storage("cannot read " + path.string());
        }
        if (got == 0) {
            break;
        }
        have += static_cast<std::size_t>(got);
    }
    return have;
}

/// Opens a file. Returns an empty descriptor if the file does not exist. `is_storage`: is_storage_failure() or
/// is_storage_failure_of_users_path().
FileDescriptor open_if_there(const fs::path& path, bool (*is_storage)(int) = is_storage_failure) {
    std::string problem;
    FileDescriptor file = open_regular(path, O_RDONLY, problem);
    if (!file && is_storage(errno)) {
        throw_storage("cannot open " + path.string());
    }
    if (!file && (errno == EEXIST || is_storage_failure(errno))) {
        refuse(path, "cannot be opened: " + problem);
    }
    return file;
}

FileDescriptor open_to_read(const fs::path& path, bool (*is_storage)(int) = is_storage_failure) {
    FileDescriptor file = open_if_there(path, is_storage);
    if (!file) {
        refuse(path, "there is no such file");
    }
    return file;
}

/// The size and the checksum of the file behind the user block. The checksum continues from `crc`.
struct Rest {
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;
};
Rest checksum_rest(int file, std::uint32_t crc, const fs::path& path,
                   const std::function<void(std::span<const std::byte>)>& visit = {}) {
    Rest rest{0, crc};
    std::vector<std::byte> chunk(chunk_bytes);
    while (const std::size_t got = read_some(file, chunk, path)) {
        const auto part = std::span(chunk).first(got);
        rest.crc = crc32c(part, rest.crc);
        rest.bytes += got;
        if (visit) {
            visit(part);
        }
    }
    return rest;
}

/// Writes the user block of a finished file and syncs the file. Throws StorageError.
void seal(const fs::path& path) {
    std::string problem;
    FileDescriptor file = open_regular(path, O_RDWR | O_NOFOLLOW, problem);
    struct stat found {};
    if (!file || ::fstat(file.get(), &found) != 0 ||
        ::lseek(file.get(), user_block_bytes, SEEK_SET) != user_block_bytes) {
        throw_storage("cannot seal " + path.string());
    }
    Seal seal{magic, layout_version, 0, static_cast<std::uint64_t>(found.st_size) - user_block_bytes};
    seal.crc = checksum_rest(file.get(), crc32c(block_of(seal)), path).crc;
    const UserBlock block = block_of(seal);
    if (retry([&] { return ::pwrite(file.get(), block.data(), block.size(), 0); }) !=
        static_cast<ssize_t>(block.size())) {
        throw_storage("cannot seal " + path.string());
    }
    if (retry([&] { return ::fsync(file.get()); }) != 0) {
        throw_storage("cannot sync " + path.string());
    }
    if (::close(file.release()) != 0) {
        throw_storage("cannot close " + path.string());
    }
}

/// Fills a new HDF5 file on disk. Converts all HDF5 errors to StorageError: only a failing file system can break a
/// write.
void fill_file(const fs::path& path, const std::function<void(hid_t file)>& fill) {
    try {
        static_cast<void>(take_reason_of_failed_close());
        Hid file = new_file(path);
        fill(file.get());
        // If the close of a dataset cannot write elements, they are lost, and no later HDF5 call reports an error.
        if (const std::string why = take_reason_of_failed_close(); !why.empty()) {
            throw StorageError(fmt::format("cannot write {}: {}", path.string(), why));
        }
        check(H5Fflush(file.get(), H5F_SCOPE_LOCAL), "cannot write " + path.string());
        check(H5Fclose(file.release()), "cannot close " + path.string());
    } catch (const StorageError&) {
        throw;
    } catch (const ApiError& error) {
        throw StorageError(error.what());
    }
}

/// What check_bytes() found.
struct Checked {
    std::optional<std::string> damage = {};  ///< nothing: the bytes have not changed since they were written
    std::vector<std::byte> bytes = {};       ///< of the file; none if they are more than most_bytes_in_memory
    std::uint32_t crc = 0;                   ///< of the file
};

/// Checks an open file. Throws FileError if it has an unknown layout version, which does not count as damage. Throws
/// StorageError if the file cannot be read.
Checked check_bytes(int file, const fs::path& path) {
    UserBlock block{};
    Seal seal{};
    const std::size_t head = read_some(file, block, path);
    std::memcpy(&seal, block.data(), sizeof seal);
    if (head < block.size() || seal.magic != magic) {
        return {head == 0 ? "is empty" : "does not begin as a file of Finch does"};
    }
    std::vector<std::byte> bytes(block.begin(), block.end());
    const std::uint32_t expected = std::exchange(seal.crc, 0);
    std::memcpy(block.data(), &seal, sizeof seal);
    const Rest rest = checksum_rest(file, crc32c(block), path, [&](std::span<const std::byte> part) {
        if (bytes.size() <= most_bytes_in_memory) {
            bytes.insert(bytes.end(), part.begin(), part.end());
        }
    });
    if (rest.bytes != seal.rest_bytes) {
        return {fmt::format("has {} bytes behind its first {}, not the {} that were written", rest.bytes,
                            user_block_bytes, seal.rest_bytes)};
    }
    if (rest.crc != expected) {
        return {"its checksum does not fit: some of its bytes have changed since it was written"};
    }
    if (seal.version != layout_version) {
        refuse(path, fmt::format("has layout version {}; this program knows version {}", seal.version, layout_version));
    }
    return {std::nullopt, bytes.size() <= most_bytes_in_memory ? std::move(bytes) : std::vector<std::byte>(), expected};
}

/// Checks a file. Returns nothing if the file does not exist. Throws FileError if it cannot be opened, and the errors
/// of check_bytes().
std::optional<Checked> check_if_there(const fs::path& path) {
    const FileDescriptor file = open_if_there(path);
    return file ? std::optional(check_bytes(file.get(), path)) : std::nullopt;
}

/// Opens a regular file, or its bytes if `checked` has them.
Hid open_hdf5(const fs::path& path, const Checked& checked = {}) {
    std::string name = path.string();
    const Hid access(check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"));
    check(H5Pset_file_locking(access.get(), false, true), "H5Pset_file_locking");
    if (!checked.bytes.empty()) {
        name = name_in_memory(path, std::max(checked.crc, 1U));
        check(H5Pset_fapl_core(access.get(), growth_bytes, false), "H5Pset_fapl_core");
        auto* const bytes = const_cast<std::byte*>(checked.bytes.data());  // HDF5 copies them
        check(H5Pset_file_image(access.get(), bytes, checked.bytes.size()), "H5Pset_file_image");
    }
    errno = 0;
    const hid_t file = H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.get());
    if (file < 0 && errno != 0 && errno != EINVAL && is_storage_failure(errno)) {
        throw_storage("cannot open " + path.string());
    }
    return Hid(check_reading(file, path.string() + " cannot be opened as HDF5"));
}

}  // namespace

void write_file(const fs::path& path, const std::function<void(hid_t file)>& fill, const Replacing& replacing) {
    prepare();
    const Hid file = file_in_memory(path);
    fill(file.get());
    const std::span<std::byte> bytes = bytes_of(file.get());
    std::ranges::copy(sealed(bytes.subspan(user_block_bytes)), bytes.begin());
    replace_file(path, {bytes}, replacing);
}

void write_large_file(const fs::path& path, const std::function<void(hid_t file)>& fill, const Replacing& replacing) {
    prepare();
    replace_file(
        path,
        [&](const fs::path& beside) {
            fill_file(beside, fill);
            seal(beside);
        },
        replacing);
}

Hid open_plain_file(const fs::path& path) {
    prepare();
    static_cast<void>(open_to_read(path, is_storage_failure_of_users_path));
    return open_hdf5(path);
}

Hid open_file(const fs::path& path) {
    prepare();
    const FileDescriptor file = open_to_read(path);
    const Checked checked = check_bytes(file.get(), path);
    if (checked.damage) {
        refuse(path, *checked.damage);
    }
    return open_hdf5(path, checked);
}

std::optional<Hid> open_file_or_previous(const fs::path& path, std::vector<std::string>& problems, OnDamage on_damage) {
    prepare();
    if (const auto newest = check_if_there(path)) {
        if (!newest->damage) {
            return open_hdf5(path, *newest);
        }
        const std::string aside = on_damage == OnDamage::set_aside ? set_aside(path) : "";
        problems.push_back(
            fmt::format("{}: {}{}", path.string(), *newest->damage, aside.empty() ? "" : "; set aside as " + aside));
    }
    const fs::path previous = path.string() + previous_suffix;
    const auto before = check_if_there(previous);
    if (!before) {
        return std::nullopt;
    }
    if (before->damage) {
        problems.push_back(previous.string() + ": " + *before->damage);
        return std::nullopt;
    }
    problems.push_back(path.string() + ": its predecessor is taken");
    return open_hdf5(previous, *before);
}

std::string library_version() {
    prepare();
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    check(H5get_libversion(&major, &minor, &release), "H5get_libversion");
    const std::string loaded = fmt::format("{}.{}.{}", major, minor, release);
    const std::string built = fmt::format("{}.{}.{}", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
    const char* locking = std::getenv("HDF5_USE_FILE_LOCKING");
    return fmt::format("{}{}, HDF5_USE_FILE_LOCKING={}", loaded, loaded == built ? "" : ", built with " + built,
                       locking == nullptr ? "unset" : locking);
}

}  // namespace finch::hdf5
