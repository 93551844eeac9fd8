#pragma once

#include "finch/hdf5/file.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Checks of a file's objects before anything is read or allocated: a file may contain anything.
namespace finch::hdf5 {

/// The size of a block of table rows that is processed in one step: small enough for a processor's cache.
inline constexpr std::size_t block_bytes = std::size_t{1} << 18;

/// Returns a link access property list that refuses links into other files.
[[nodiscard]] Hid within_this_file();

/// Opens an object of the file that holds `at`. Throws FileError with the reason: it does not exist, or HDF5 cannot
/// open it, for example since it is damaged or of a newer format.
[[nodiscard]] Hid open_object(hid_t at, const std::string& name);

/// Opens a dataset with all elements in the file that holds `at`. Throws FileError with the reason: missing, stored in
/// another file, virtual, not completely written, compressed by a missing filter, or larger than the file can hold.
[[nodiscard]] Hid open_dataset(hid_t at, const std::string& name);

/// Opens a table like open_dataset(). Throws FileError if the table is stored in chunks, since Finch writes no chunked
/// tables. Tables are read a block of rows at a time, and a chunk larger than libhdf5's cache would be decompressed
/// again for each block.
[[nodiscard]] Hid open_table(hid_t at, const std::string& name);

/// Returns the product of `sizes`. Throws FileError with `name` if the product does not fit into 63 bits.
[[nodiscard]] std::uint64_t product(const std::vector<std::int64_t>& sizes, const std::string& name);

[[nodiscard]] std::vector<std::int64_t> shape_of(hid_t dataset);

}  // namespace finch::hdf5
