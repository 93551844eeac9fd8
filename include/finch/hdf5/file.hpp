#pragma once

#include "finch/base/handle.hpp"
#include "finch/base/named_array.hpp"
#include "finch/base/replace.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <hdf5.h>
#include <optional>
#include <string>
#include <vector>

namespace finch::hdf5 {

/// The handle traits of any hid_t; destroy() closes an id according to its type.
struct HidTraits {
    using type = hid_t;
    static type null() noexcept { return -1; }
    static void destroy(type id) noexcept;
};
using Hid = UniqueHandle<HidTraits>;

/// Configures HDF5 before its first use. After this call, HDF5 prints no error messages. HDF5 locks no files unless
/// HDF5_USE_FILE_LOCKING enables locks, since shared file systems refuse locks. All functions of this header that open
/// or make a file call prepare(). Repeated calls do no harm.
void prepare();

/// Returns `result`. Throws ApiError with `what` and HDF5's innermost error message if `result` is negative.
hid_t check(hid_t result, const std::string& what);
/// Checks the result of a read operation like check(), but throws FileError. If HDF5 does not know the version of an
/// object, the message says how to rewrite the file.
hid_t check_reading(hid_t result, const std::string& what);

/// Writes an HDF5 file in one atomic step. `fill` fills the open file in memory. The file begins with a user block of
/// 512 bytes, which contains a CRC-32C of the whole file. replace_file() then writes the file to disk. At any moment
/// `path` is the old or the new file. Throws StorageError if the file system fails, for example if the disk is full,
/// and ApiError if HDF5 refuses a call. The file at `path` stays intact in both cases.
void write_file(const std::filesystem::path& path, const std::function<void(hid_t file)>& fill,
                const Replacing& replacing = {});

/// Writes an HDF5 file like write_file(), but builds it on disk, because it may be too large for memory. The file has
/// the name of an unfinished file until it is complete. The complete file is read once more to compute its checksum. If
/// the disk is full, HDF5 keeps the unfinished file, a descriptor and its caches open until the process ends.
void write_large_file(const std::filesystem::path& path, const std::function<void(hid_t file)>& fill,
                      const Replacing& replacing = {});

/// Opens a file read-only after checking the CRC in its user block. Throws FileError with the reason: missing,
/// truncated, not HDF5, or a wrong checksum.
[[nodiscard]] Hid open_file(const std::filesystem::path& path);

/// Opens a user's own HDF5 file read-only: it has no user block of Finch and no checksum. Throws FileError.
[[nodiscard]] Hid open_plain_file(const std::filesystem::path& path);

/// Opens `path`, or its predecessor if `path` is damaged or missing. Adds a message to `problems` for each damaged
/// file. Returns nothing if both files are damaged or missing. Throws FileError if a file cannot be opened at all
/// (permission, a newer layout), and leaves this file as it is. Throws StorageError if the file system fails.
[[nodiscard]] std::optional<Hid> open_file_or_previous(const std::filesystem::path& path,
                                                       std::vector<std::string>& problems, OnDamage on_damage);

/// Returns the size of the file that holds `object`, in bytes.
[[nodiscard]] std::uint64_t file_bytes(hid_t object);

/// True if the file that holds `at` has an object `name`. Throws FileError if HDF5 cannot find this out.
[[nodiscard]] bool has_object(hid_t at, const std::string& name);

/// These functions write and read attributes (at most 64 KiB) and datasets of the object `at`. A '/' in a dataset's
/// name makes groups. Read functions do not trust the file: they check an object before they allocate memory. Read
/// functions throw FileError with the object's name if an attribute or text is not a single value of its type. Read
/// functions also throw FileError if a dataset is stored outside the file (external storage or links), is virtual, is
/// not completely written, needs a missing filter, or claims to be larger than the file can hold.
void write_attribute(hid_t at, const std::string& name, const std::string& value);
void write_attribute(hid_t at, const std::string& name, std::int64_t value);
void write_attribute(hid_t at, const std::string& name, double value);
void write_unsigned_attribute(hid_t at, const std::string& name, std::uint64_t value);
void write_texts_attribute(hid_t at, const std::string& name, const std::vector<std::string>& values);
[[nodiscard]] std::string read_text_attribute(hid_t at, const std::string& name);
[[nodiscard]] std::int64_t read_int_attribute(hid_t at, const std::string& name);
[[nodiscard]] double read_double_attribute(hid_t at, const std::string& name);
[[nodiscard]] std::uint64_t read_unsigned_attribute(hid_t at, const std::string& name);
/// Reads a one-dimensional attribute of texts.
[[nodiscard]] std::vector<std::string> read_texts_attribute(hid_t at, const std::string& name);
[[nodiscard]] bool has_attribute(hid_t at, const std::string& name);
/// Writes an array. Throws Error if the shape does not fit the number of values.
void write_array(hid_t at, const NamedArray& array);
/// Reads a dataset of numbers. The result has the smallest of four types that holds all numbers of the dataset: uint8
/// for uint8, int64 for other whole numbers, float for 16- and 32-bit floats, double for other floats. Throws FileError
/// if there is no such dataset of numbers.
[[nodiscard]] NamedArray read_array(hid_t at, const std::string& name);
/// Returns the shape of a dataset, after the same checks as read_array(). Throws FileError.
[[nodiscard]] std::vector<std::int64_t> read_shape(hid_t at, const std::string& name);
/// The place of a dataset with contiguous elements: the byte offset in the file, and the type, which is 32-bit float or
/// unsigned byte.
struct Contiguous {
    std::int64_t offset = 0;
    bool is_float = false;
};
/// Returns the place of a contiguous dataset's elements. Throws FileError if the elements are stored in chunks,
/// compressed, or of another type. The message gives the reason.
[[nodiscard]] Contiguous read_place(hid_t at, const std::string& name);
/// Reads every dataset of numbers under `at` and its groups, in the order of their names. The name of a dataset in a
/// group contains '/'. If `wanted` is given, reads only the datasets whose names `wanted` accepts.
[[nodiscard]] NamedArrays read_arrays(hid_t at, const std::function<bool(const std::string&)>& wanted = {});
void write_text(hid_t at, const std::string& name, const std::string& text);
[[nodiscard]] std::string read_text(hid_t at, const std::string& name);

/// Returns a text with the version of the loaded HDF5 library, such as "1.10.8". The text also has the version at build
/// time if it differs, and the value of HDF5_USE_FILE_LOCKING.
[[nodiscard]] std::string library_version();

}  // namespace finch::hdf5
