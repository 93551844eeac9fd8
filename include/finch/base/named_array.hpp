#pragma once

#include "finch/base/bytes.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace finch {

/// An array with a name and a shape. Snapshots and saved models consist of named arrays, and HDF5 stores each array as
/// one dataset.
struct NamedArray {
    std::string name;                 ///< may contain '/': the parts before it are HDF5 groups
    std::vector<std::int64_t> shape;  ///< row-major; empty for a scalar
    std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>, std::vector<std::uint8_t>> values;
};

using NamedArrays = std::vector<NamedArray>;

/// Returns the array with the name `name`. Throws FileError if there is none.
[[nodiscard]] const NamedArray& find_array(const NamedArrays& arrays, std::string_view name);

/// write_arrays() serializes arrays for messages between MPI ranks, and read_arrays() reads the arrays back.
/// read_arrays() throws FileError if the bytes end too early.
void write_arrays(const NamedArrays& arrays, ByteWriter& writer);
[[nodiscard]] NamedArrays read_arrays(ByteReader& reader);

}  // namespace finch
