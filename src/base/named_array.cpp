#include "finch/base/named_array.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <span>

namespace finch {
namespace {

void write_array(const NamedArray& array, ByteWriter& writer) {
    writer.put_text(array.name);
    writer.put_all(std::span<const std::int64_t>(array.shape));
    writer.put(static_cast<std::uint32_t>(array.values.index()));
    std::visit([&](const auto& values) { writer.put_all(std::span(values)); }, array.values);
}

NamedArray read_array(ByteReader& reader) {
    NamedArray array;
    array.name = reader.get_text();
    array.shape = reader.get_all<std::int64_t>();
    switch (reader.get<std::uint32_t>()) {
        case 0:
            array.values = reader.get_all<float>();
            break;
        case 1:
            array.values = reader.get_all<double>();
            break;
        case 2:
            array.values = reader.get_all<std::int64_t>();
            break;
        case 3:
            array.values = reader.get_all<std::uint8_t>();
            break;
        default:
            throw FileError(fmt::format("array {} has an unknown type", array.name));
    }
    return array;
}

}  // namespace

const NamedArray& find_array(const NamedArrays& arrays, std::string_view name) {
    for (const NamedArray& array : arrays) {
        if (array.name == name) {
            return array;
        }
    }
    throw FileError("there is no array called '" + std::string(name) + "'");
}

void write_arrays(const NamedArrays& arrays, ByteWriter& writer) {
    writer.put(static_cast<std::uint32_t>(arrays.size()));
    for (const NamedArray& array : arrays) {
        write_array(array, writer);
    }
}

NamedArrays read_arrays(ByteReader& reader) {
    NamedArrays arrays;
    const auto count = reader.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < count; ++i) {
        arrays.push_back(read_array(reader));
    }
    return arrays;
}

}  // namespace finch
