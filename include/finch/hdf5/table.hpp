#pragma once

#include "finch/base/error.hpp"
#include "finch/hdf5/file.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace finch::hdf5 {

/// Words as numbers into a list of names: HDF5 prints the name.
struct EnumValues {
    std::vector<std::string> names;
    std::vector<std::int32_t> values;
    bool operator==(const EnumValues&) const = default;
};

/// One column of a compound table: a name and as many values as there are rows.
struct Column {
    std::string name;
    std::variant<std::vector<double>, std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<std::int32_t>,
                 std::vector<std::string>, EnumValues>
        values;
};

/// Writes `columns`, all equally long, as one compound dataset. Texts are stored in fixed length, that of the longest.
void write_table(hid_t at, const std::string& name, const std::vector<Column>& columns);

/// Reads every column back, in the order of the file.
[[nodiscard]] std::vector<Column> read_table(hid_t at, const std::string& name);

/// The values of the column called `name`. Throws FileError where it is missing or of another type.
template <class Values>
[[nodiscard]] const Values& column(const std::vector<Column>& columns, const std::string& name) {
    for (const Column& candidate : columns) {
        if (candidate.name == name) {
            if (const auto* values = std::get_if<Values>(&candidate.values)) {
                return *values;
            }
            throw FileError("the column '" + name + "' is of another type");
        }
    }
    throw FileError("there is no column '" + name + "'");
}

}  // namespace finch::hdf5
