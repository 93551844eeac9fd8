#pragma once

#include "finch/base/fields.hpp"
#include "finch/hdf5/table.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

/// Tables that are derived from a struct's list of fields: a column for each field that has no table of its own.
/// Numbers and texts are stored unchanged, C++ enums as HDF5 enums, ids as numbers.
namespace finch::hdf5 {

/// A struct around one number, such as an id.
template <class T>
concept WrappedNumber = requires(T id) {
    { id.value } -> std::same_as<std::uint64_t&>;
};

/// Adds a column to `table` for each recorded field of Row. `at(row)` returns a const Row&.
template <Recorded Row, class At>
void add_columns(TableWriter& table, At at) {
    for_each_column<Row>([&](const Column& column, auto get) {
        const std::string& name = column.name;
        using Cell = std::remove_cvref_t<decltype(get(at(0)))>;
        if constexpr (EnumWithWords<Cell>) {
            table.enumeration(name, all_words<Cell>(),
                              [at, get](std::size_t row) { return static_cast<std::int32_t>(get(at(row))); });
        } else if constexpr (std::same_as<Cell, std::string>) {
            const auto text = [at, get](std::size_t row) -> const std::string& { return get(at(row)); };
            column.is_long ? table.long_text(name, text) : table.text(name, text, column.width);
        } else if constexpr (WrappedNumber<Cell>) {
            table.column(name, [at, get](std::size_t row) { return get(at(row)).value; });
        } else {
            table.column(name, [at, get](std::size_t row) { return get(at(row)); });
        }
    });
}

/// Reads the columns of Row from a table that was written in `version`. `at(row)` returns a Row&. Members of Row that
/// this version did not record keep their values. Throws FileError if any other column is missing.
template <Recorded Row, class At>
void read_columns(const TableReader& table, At at, std::int64_t version) {
    for_each_column<Row>([&](const Column& column, auto get) {
        const std::string& name = column.name;
        using Cell = std::remove_cvref_t<decltype(get(at(0)))>;
        if (column.first_version > version) {
            return;
        }
        const auto take = [&](auto&& values) {
            for (std::size_t row = 0; row < table.rows(); ++row) {
                get(at(row)) = Cell(std::move(values[row]));
            }
        };
        if constexpr (EnumWithWords<Cell>) {
            take(table.enumeration(name, all_words<Cell>()));
        } else if constexpr (std::same_as<Cell, std::string>) {
            take(table.text(name));
        } else if constexpr (WrappedNumber<Cell>) {
            take(table.column<std::uint64_t>(name));
        } else {
            take(table.column<Cell>(name));
        }
    });
    for (std::size_t row = 0; row < table.rows(); ++row) {
        shrink(at(row));
    }
}

/// Reads all rows of a table of Rows that was written in `version`.
template <Recorded Row>
[[nodiscard]] std::vector<Row> read_rows(const TableReader& table, std::int64_t version) {
    std::vector<Row> rows(table.rows());
    read_columns<Row>(
        table, [&](std::size_t row) -> Row& { return rows[row]; }, version);
    return rows;
}

}  // namespace finch::hdf5
