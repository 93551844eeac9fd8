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

/// Two ids in one column.
using Pair = std::array<std::uint64_t, 2>;

/// Types that a column stores unchanged.
template <class T>
concept ColumnValue = std::same_as<T, std::int32_t> || std::same_as<T, std::uint32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t> || std::same_as<T, double> || std::same_as<T, Pair>;

/// HDF5's type of a column of T.
template <ColumnValue T>
[[nodiscard]] Hid type_of();

/// An enum whose members are `words`, numbered from 0.
[[nodiscard]] Hid enum_type(std::span<const std::string> words);

/// Rows [first, first + count) of a table.
struct RowRange {
    std::size_t first = 0;
    std::size_t count = 0;
};

/// Whether something of that name stands there.
[[nodiscard]] bool has_table(hid_t at, const std::string& name);

/// A table that may be too large for memory, read in blocks. `key` is its column of whole numbers that says whose a row
/// is. Every function throws FileError if the file cannot be read; the first one where it has no such table.
class LargeTable {
public:
    LargeTable(hid_t at, std::string name, std::string key);

    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    /// Calls `visit` with the keys, a block of rows at a time, from the first row on.
    void visit(const std::function<void(std::span<const std::uint64_t>)>& visit) const;
    /// Reads `rows` as elements of the compound `type`: by the columns' names; what the table does not have stays as it
    /// is in `out`.
    void read(RowRange rows, hid_t type, std::byte* out) const;

private:
    std::string name_;
    std::string key_;
    Hid dataset_;
    Hid space_;
    std::size_t rows_ = 0;
};

/// A table that is written at once: columns by name, each with a function that gives its value in a row, then write().
/// The rows are packed, contiguous, and one compound element each. What the functions look at must live until write().
class TableWriter {
public:
    explicit TableWriter(std::size_t rows);

    /// `value(row)` is a ColumnValue.
    template <class Value>
    void column(const std::string& name, Value value) {
        using Cell = std::remove_cvref_t<std::invoke_result_t<Value, std::size_t>>;
        add(name, type_of<Cell>(), std::move(value));
    }
    /// `place(row)` is the place of the row's word among `words`, an std::int32_t.
    template <class Value>
    void enumeration(const std::string& name, std::span<const std::string> words, Value place) {
        add(name, enum_type(words), std::move(place));
    }
    /// Short text, padded to the longest in the column, or to `width` bytes. `text(row)` is a const std::string&.
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
    /// Text of any length, each row as long as it is; slower. `text(row)` is a const std::string& that lives on.
    template <class Text>
    void long_text(const std::string& name, Text text) {
        add(name, variable_text(), [text](std::size_t row) { return text(row).c_str(); });
    }

    /// How many bytes the type of a row takes in the file, which HDF5 limits to 64 KiB.
    [[nodiscard]] std::size_t type_bytes() const;
    /// Throws ApiError.
    void write(hid_t at, const std::string& name) const { write(at, name, nullptr, {}); }
    /// The same, behind `kept` rows of an earlier table, whose missing columns become zeros.
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

    std::size_t rows_;
    std::vector<Column> columns_;
};

/// A table that was read at once; columns are asked for by name. Every function throws FileError if there is no such
/// column or it has another type.
class TableReader {
public:
    /// Throws FileError if there is no such table, or it claims more rows or text than its file can hold.
    TableReader(hid_t at, std::string name);
    TableReader(const TableReader&) = delete;
    TableReader& operator=(const TableReader&) = delete;
    /// Reads a large table in blocks that stay in a processor's cache: calls `visit` with each, and the row that it
    /// begins with; once where there are no rows.
    static void read_in_blocks(hid_t at, const std::string& name,
                               const std::function<void(const TableReader& block, std::size_t first)>& visit);

    /// Rows read by this reader, and rows of the whole table.
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
    /// For each row the index of its word in `words`, whatever the numbering in the file.
    [[nodiscard]] std::vector<std::int32_t> enumeration(const std::string& column_name,
                                                        std::span<const std::string> words) const;
    /// Either kind of text.
    [[nodiscard]] std::vector<std::string> text(const std::string& column_name) const;

private:
    struct Column {
        std::size_t offset;
        Hid type;
    };
    /// Memory for HDF5's texts of variable length: together no longer than the file, however often it names one.
    struct Texts {
        std::pmr::monotonic_buffer_resource memory;
        std::uint64_t bytes_left = 0;
        static void* allocate(std::size_t size, void* texts);  ///< HDF5's; nullptr: it gives up
        static void keep(void*, void*) {}                      ///< HDF5's; the reader frees them all
    };

    struct NothingYet {};
    TableReader(hid_t at, std::string name, NothingYet);

    void read(RowRange rows);
    [[nodiscard]] const Column& find(const std::string& column_name) const;
    /// The first cell of a column whose type must be `type`.
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
