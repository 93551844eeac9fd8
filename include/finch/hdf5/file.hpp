#pragma once

#include "finch/base/handle.hpp"
#include "finch/base/named_array.hpp"

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

/// Throws ApiError with `what` and HDF5's own innermost message where `result` is negative; returns it otherwise.
hid_t check(hid_t result, const std::string& what);

/// Writes an HDF5 file as one step: beside the target, flushed, a CRC-32C of the rest put into the user block, fsync,
/// the old file hard-linked to `path.previous`, rename, fsync of the folder. At any moment `path` is the old or the new
/// file. `fill` gets the open file. Throws ApiError, and then the old file stands.
void write_file(const std::filesystem::path& path, const std::function<void(hid_t file)>& fill);

/// Opens a file read-only after its user block's CRC was checked. Throws FileError that names what is wrong: missing,
/// truncated, not HDF5, the checksum does not fit.
[[nodiscard]] Hid open_file(const std::filesystem::path& path);

/// Opens a user's own HDF5 file read-only: no user block of ours, no checksum. Throws FileError.
[[nodiscard]] Hid open_plain_file(const std::filesystem::path& path);

/// open_file(path), else its predecessor: a damaged file is renamed to `path.damaged` and told in `problems`. Nothing
/// where neither can be read or both are missing.
[[nodiscard]] std::optional<Hid> open_file_or_previous(const std::filesystem::path& path,
                                                       std::vector<std::string>& problems);

/// Attributes (at most 64 KiB) of the object `at`, and datasets by name ('/' makes groups).
void write_attribute(hid_t at, const std::string& name, const std::string& value);
void write_attribute(hid_t at, const std::string& name, std::int64_t value);
void write_attribute(hid_t at, const std::string& name, double value);
[[nodiscard]] std::string read_text_attribute(hid_t at, const std::string& name);
[[nodiscard]] std::int64_t read_int_attribute(hid_t at, const std::string& name);
[[nodiscard]] double read_double_attribute(hid_t at, const std::string& name);
void write_array(hid_t at, const NamedArray& array);
[[nodiscard]] NamedArray read_array(hid_t at, const std::string& name);
/// Every dataset under `at`, names with '/'.
[[nodiscard]] NamedArrays read_arrays(hid_t at);
void write_text(hid_t at, const std::string& name, const std::string& text);
[[nodiscard]] std::string read_text(hid_t at, const std::string& name);

}  // namespace finch::hdf5
