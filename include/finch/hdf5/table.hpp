#pragma once

#include "finch/base/error.hpp"
#include "finch/hdf5/file.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace finch::hdf5 {

/// A column's value that consists of two ids.
using Pair = std::array<std::uint64_t, 2>;

/// The types that a column stores unchanged.
template <class T>
concept ColumnValue = std::same_as<T, std::int32_t> || std::same_as<T, std::uint32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t> || std::same_as<T, double> || std::same_as<T, Pair>;

/// Returns HDF5's type of a column of T.
template <ColumnValue T>
[[nodiscard]] Hid type_of();

/// Returns an HDF5 enum with the members `words`, numbered from 0.
[[nodiscard]] Hid enum_type(std::span<const std::string> words);

/// Rows [first, first + count) of a table.
struct RowRange {
    std::size_t first = 0;
    std::size_t count = 0;
};

/// A table that may be too large for memory and is read in blocks. The column `key` contains the id of each row's
/// owner. Every function throws FileError if the file cannot be read. The constructor also throws FileError if the
/// table does not exist.
class LargeTable {
public:
    LargeTable(hid_t at, std::string name, std::string key);

    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    /// Calls `visit` with the keys of all rows in order, a block of rows at a time.
    void visit(const std::function<void(std::span<const std::uint64_t>)>& visit) const;
    /// Reads `rows` as elements of the compound type `type`; columns are matched by name. Members without a column in
    /// the table keep their values in `out`.
    void read(RowRange rows, hid_t type, std::byte* out) const;

private:
    std::string name_;
    std::string key_;
    Hid dataset_;
    Hid space_;
    std::size_t rows_ = 0;
};

/// A table that is written in one step. First columns are added, each with a name and a function that returns its value
/// in a row; then write() is called. The rows are packed and contiguous, each a compound element. All objects that the
/// columns' functions use must stay alive until write() is called.
class TableWriter {
public:
    explicit TableWriter(std::size_t rows);

    /// Adds a column. `value(row)` returns a ColumnValue.
    template <class Value>
    void column(const std::string& name, Value value) {
        using Cell = std::remove_cvref_t<std::invoke_result_t<Value, std::size_t>>;
        add(name, type_of<Cell>(), std::move(value));
    }
    /// Adds an enum column. `place(row)` returns the index of the row's word in `words`, an std::int32_t.
    template <class Value>
    void enumeration(const std::string& name, std::span<const std::string> words, Value place) {
        add(name, enum_type(words), std::move(place));
    }
    /// Adds a column of short texts, padded to the longest of them, or to `width` bytes. `text(row)` returns a const
    /// std::string&.
    template <class Text>
    void text(const std::string& name, Text text, std::size_t width = 1) {
        for (std::size_t row = 0; row < rows_; ++row) {
            width = std::max(width, text(row).size());
        }
        add_cells(name, fixed_text(width), [text, width](std::size_t row, std::byte* cell) {
            const std::string& value = text(row);
            std::memcpy(cell, value.data(), value.size());
            std::memset(cell + value.size(), 0, width - value.size());
        });
    }
    /// Adds a column of texts of any length. Variable-length texts need no padding, but are slower. `text(row)` returns
    /// a const std::string& that stays valid until write() is called.
    template <class Text>
    void long_text(const std::string& name, Text text) {
        add(name, variable_text(), [text](std::size_t row) { return text(row).c_str(); });
    }

    /// Returns the encoded size of the row type in bytes. HDF5 limits this size to 64 KiB.
    [[nodiscard]] std::size_t type_bytes() const;
    /// Writes the table. Throws ApiError.
    void write(hid_t at, const std::string& name) const { write(at, name, nullptr, {}); }
    /// Writes the rows `kept` of an earlier table, then the rows of this table. Numbers that the earlier table lacks
    /// are NaN in its rows if they are doubles, and 0 otherwise.
    void write(hid_t at, const std::string& name, const LargeTable* earlier, std::span<const RowRange> kept) const;

private:
    /// Writes rows `first` … `first + count − 1` of one column into cells that are `stride` bytes apart.
    using Fill = std::function<void(std::size_t first, std::size_t count, std::byte* cell, std::size_t stride)>;
    struct Column {
        std::string name;
        Hid type;
        Fill fill;
    };

    template <class Value>
    void add(const std::string& name, Hid type, Value value) {
        add_cells(name, std::move(type), [value](std::size_t row, std::byte* cell) {
            const auto plain = value(row);
            std::memcpy(cell, &plain, sizeof plain);
        });
    }
    template <class Put>
    void add_cells(const std::string& name, Hid type, Put put) {
        columns_.push_back(
            {name, std::move(type), [put](std::size_t first, std::size_t count, std::byte* cell, std::size_t stride) {
                 for (std::size_t row = first; row < first + count; ++row, cell += stride) {
                     put(row, cell);
                 }
             }});
    }
    [[nodiscard]] static Hid fixed_text(std::size_t width);
    [[nodiscard]] static Hid variable_text();
    [[nodiscard]] Hid row_type() const;
    [[nodiscard]] std::vector<std::byte> row_of_missing_values(std::size_t bytes) const;

    std::size_t rows_;
    std::vector<Column> columns_;
};

/// A table that is read in one step; its columns are then accessed by name. Every function throws FileError if the
/// column does not exist or has another type.
class TableReader {
public:
    /// Reads a table. Throws FileError if the table does not exist, or claims more rows or text than its file can hold.
    TableReader(hid_t at, std::string name);
    TableReader(const TableReader&) = delete;
    TableReader& operator=(const TableReader&) = delete;
    /// Reads a large table in blocks that fit into a processor's cache. Calls `visit` with each block and the index of
    /// its first row; calls it once if there are no rows.
    static void read_in_blocks(hid_t at, const std::string& name,
                               const std::function<void(const TableReader& block, std::size_t first)>& visit);

    /// The number of rows in this reader, and in the whole table.
    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] std::size_t all_rows() const noexcept { return all_rows_; }

    template <ColumnValue T>
    [[nodiscard]] std::vector<T> column(const std::string& column_name) const {
        const Hid type = type_of<T>();
        const std::byte* cell = cells(column_name, type.get());
        std::vector<T> values(rows_);
        for (T& value : values) {
            std::memcpy(&value, cell, sizeof value);
            cell += row_bytes_;
        }
        return values;
    }
    /// Returns the index in `words` of each row's word, independent of the enum's numbers in the file.
    [[nodiscard]] std::vector<std::int32_t> enumeration(const std::string& column_name,
                                                        std::span<const std::string> words) const;
    /// Returns the texts of a column with texts of fixed or variable length.
    [[nodiscard]] std::vector<std::string> text(const std::string& column_name) const;

private:
    struct Column {
        std::size_t offset;
        Hid type;
    };
    /// Memory for HDF5's texts of variable length. The total size of these texts is limited to the file's size: a file
    /// may refer to one text many times.
    struct Texts {
        std::pmr::monotonic_buffer_resource memory;
        std::uint64_t bytes_left = 0;
        static void* allocate(std::size_t size, void* texts);  ///< callback of HDF5; nullptr: HDF5 gives up
        static void keep(void*, void*) {}                      ///< callback of HDF5; the reader frees all texts
    };

    struct NothingYet {};
    TableReader(hid_t at, std::string name, NothingYet);

    void read(RowRange rows);
    [[nodiscard]] const Column& find(const std::string& column_name) const;
    /// Returns the first cell of a column. Throws FileError unless the column's type is `type`.
    [[nodiscard]] const std::byte* cells(const std::string& column_name, hid_t type) const;
    [[noreturn]] void refuse(const std::string& column_name, const std::string& why) const;

    std::string name_;
    Hid dataset_;
    Hid type_;
    std::size_t all_rows_ = 0;
    std::size_t rows_ = 0;
    std::size_t row_bytes_ = 0;
    Texts texts_;
    std::unique_ptr<std::byte[]> bytes_;
    std::map<std::string, Column> columns_;
};

}  // namespace finch::hdf5
