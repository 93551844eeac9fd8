#pragma once

#include "finch/base/bytes.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace finch {

/// An array with a name and a shape: what snapshots and models are made of, and what HDF5 stores as one dataset.
struct NamedArray {
    std::string name;                 ///< may contain '/', which HDF5 stores as groups
    std::vector<std::int64_t> shape;  ///< row-major; empty for a scalar
    std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>, std::vector<std::uint8_t>> values;
};

using NamedArrays = std::vector<NamedArray>;

/// The array called `name`. Throws FileError if there is none.
[[nodiscard]] const NamedArray& find_array(const NamedArrays& arrays, const std::string& name);

/// Arrays as bytes between the ranks of one start, and back. read_arrays() throws FileError if they end too early.
void write_arrays(const NamedArrays& arrays, ByteWriter& writer);
[[nodiscard]] NamedArrays read_arrays(ByteReader& reader);

}  // namespace finch
