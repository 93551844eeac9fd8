#pragma once

#include "finch/base/handle.hpp"
#include "finch/base/named_array.hpp"
#include "finch/base/replace.hpp"

#include <filesystem>
#include <functional>
#include <hdf5.h>
#include <optional>
#include <string>
#include <vector>

namespace finch::hdf5 {

/// Owns any hid_t; closes it by its kind.
struct HidTraits {
    using type = hid_t;
    static type null() noexcept { return -1; }
    static void destroy(type id) noexcept;
};
using Hid = UniqueHandle<HidTraits>;

/// Before HDF5's first use: it prints nothing by itself, and locks no file (shared file systems refuse that) unless
/// HDF5_USE_FILE_LOCKING says so. Every function here that opens or makes a file calls it; repetition does no harm.
void prepare();

/// Throws ApiError with `what` and HDF5's own innermost message where `result` is negative; returns it otherwise.
hid_t check(hid_t result, const std::string& what);
/// The same while something is read: throws FileError.
hid_t check_reading(hid_t result, const std::string& what);

/// Writes an HDF5 file as one step: made in memory, with a user block of 512 bytes that holds a CRC-32C of the whole,
/// then replace_file() with Predecessor::keep. At any moment `path` is the old or the new file. `fill` gets the open
/// file. Throws StorageError if the disk is full and the like, ApiError for what HDF5 refuses; whole is the file
/// either way.
void write_file(const std::filesystem::path& path, const std::function<void(hid_t file)>& fill);

/// The same for a file that may be too large for memory: made on the disk, under the name of an unfinished file, and
/// read once more for its checksum. Where the disk fills up HDF5 keeps the unfinished file, a descriptor and its
/// caches, open until the process ends. `before_replacing` is called once the new file is whole; where it throws the
/// old one stays.
void write_large_file(const std::filesystem::path& path, const std::function<void(hid_t file)>& fill,
                      const std::function<void()>& before_replacing = {});

/// Opens a file read-only after its user block's CRC was checked. Throws FileError that names what is wrong: missing,
/// truncated, not HDF5, the checksum does not fit.
[[nodiscard]] Hid open_file(const std::filesystem::path& path);

/// Opens a user's own HDF5 file read-only: no user block of ours, no checksum. Throws FileError.
[[nodiscard]] Hid open_plain_file(const std::filesystem::path& path);

/// open_file(path), else its predecessor. A damaged file is told in `problems`. Nothing if both are damaged or
/// missing. Throws FileError if one cannot be opened at all (permission, a newer layout): such a file is left as it
/// is. Throws StorageError if it cannot be told what is there.
[[nodiscard]] std::optional<Hid> open_file_or_previous(const std::filesystem::path& path,
                                                       std::vector<std::string>& problems, OnDamage on_damage);

/// Attributes (at most 64 KiB) of the object `at`, and datasets by name ('/' makes groups). Reading believes nothing:
/// it throws FileError that names the object where an attribute or text is no single value of its kind, and where a
/// dataset is stored outside of the file (external storage or links), virtual, not wholly written, packed by a filter
/// that is not there, or larger than the file can hold; all that before anything is allocated for it.
void write_attribute(hid_t at, const std::string& name, const std::string& value);
void write_attribute(hid_t at, const std::string& name, std::int64_t value);
void write_attribute(hid_t at, const std::string& name, double value);
void write_unsigned_attribute(hid_t at, const std::string& name, std::uint64_t value);
void write_texts_attribute(hid_t at, const std::string& name, const std::vector<std::string>& values);
[[nodiscard]] std::string read_text_attribute(hid_t at, const std::string& name);
[[nodiscard]] std::int64_t read_int_attribute(hid_t at, const std::string& name);
[[nodiscard]] double read_double_attribute(hid_t at, const std::string& name);
[[nodiscard]] std::uint64_t read_unsigned_attribute(hid_t at, const std::string& name);
/// A one-dimensional attribute of texts.
[[nodiscard]] std::vector<std::string> read_texts_attribute(hid_t at, const std::string& name);
[[nodiscard]] bool has_attribute(hid_t at, const std::string& name);
/// Throws Error if the shape does not fit the number of values.
void write_array(hid_t at, const NamedArray& array);
/// Numbers come in the smallest of the four kinds that holds them all: uint8 as such, other whole numbers as int64,
/// 16- and 32-bit floats as float, other floats as double. Throws FileError if there is no such dataset of numbers.
[[nodiscard]] NamedArray read_array(hid_t at, const std::string& name);
/// The shape of a dataset that read_array() would not refuse for what it claims. Throws FileError.
[[nodiscard]] std::vector<std::int64_t> read_shape(hid_t at, const std::string& name);
/// Place in the file of a dataset's elements, stored one after another as in memory: bytes from the file's beginning,
/// and whether they are floats of 32 bits, not unsigned bytes.
struct Contiguous {
    std::int64_t offset = 0;
    bool is_float = false;
};
/// Throws FileError that says how else it is stored: in chunks, packed, as other numbers.
[[nodiscard]] Contiguous read_place(hid_t at, const std::string& name);
/// Every dataset of numbers under `at`, names with '/', in the order of the names.
[[nodiscard]] NamedArrays read_arrays(hid_t at);
void write_text(hid_t at, const std::string& name, const std::string& text);
[[nodiscard]] std::string read_text(hid_t at, const std::string& name);

/// "1.10.8" as loaded, and what the program was built with where that is another one. Says whether locking is on.
[[nodiscard]] std::string library_version();

}  // namespace finch::hdf5
