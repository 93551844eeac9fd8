#pragma once

#include "finch/hdf5/file.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What is checked of a file's objects before anything is read or allocated: a file may say anything.
namespace finch::hdf5 {

/// As many rows of a table as are made or taken apart at a time: few enough to stay in a processor's cache.
inline constexpr std::size_t block_bytes = std::size_t{1} << 18;

/// A link access property list with which a link into another file cannot be followed.
[[nodiscard]] Hid within_this_file();

/// Opens a dataset whose every element is stored in the file that holds `at`. Throws FileError that names what it is
/// instead: missing, stored in another file, virtual, (partly) never written, packed by a filter that is not there, or
/// larger than so long a file can hold.
[[nodiscard]] Hid open_dataset(hid_t at, const std::string& name);

/// The same of a table, which is read a block of rows at a time: Finch stores none in chunks. One that is larger than
/// libhdf5's cache would be unpacked again for each block, so such a table is a FileError.
[[nodiscard]] Hid open_table(hid_t at, const std::string& name);

/// The bytes of the file that holds `object`.
[[nodiscard]] std::uint64_t file_bytes(hid_t object);

/// The product of `sizes`. Throws FileError that names `name` where it does not fit into 63 bits.
[[nodiscard]] std::uint64_t product(const std::vector<std::int64_t>& sizes, const std::string& name);

[[nodiscard]] std::vector<std::int64_t> shape_of(hid_t dataset);

}  // namespace finch::hdf5
