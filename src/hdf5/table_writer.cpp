#include "finch/hdf5/table.hpp"

#include "stored.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace finch::hdf5 {
namespace {

Hid copy(hid_t type) {
    return Hid(check(H5Tcopy(type), "H5Tcopy"));
}

Hid text_of_size(std::size_t size) {
    Hid type = copy(H5T_C_S1);
    check(H5Tset_size(type.get(), size), "H5Tset_size");
    check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset");
    return type;
}

}  // namespace

template <>
Hid type_of<std::int32_t>() {
    return copy(H5T_NATIVE_INT32);
}
template <>
Hid type_of<std::uint32_t>() {
    return copy(H5T_NATIVE_UINT32);
}
template <>
Hid type_of<std::int64_t>() {
    return copy(H5T_NATIVE_INT64);
}
template <>
Hid type_of<std::uint64_t>() {
    return copy(H5T_NATIVE_UINT64);
}
template <>
Hid type_of<double>() {
    return copy(H5T_NATIVE_DOUBLE);
}
template <>
Hid type_of<Pair>() {
    const hsize_t two = 2;
    return Hid(check(H5Tarray_create2(H5T_NATIVE_UINT64, 1, &two), "H5Tarray_create2"));
}

Hid enum_type(std::span<const std::string> words) {
    Hid type(check(H5Tenum_create(H5T_NATIVE_INT32), "H5Tenum_create"));
    std::int32_t place = 0;
    for (const std::string& word : words) {
        check(H5Tenum_insert(type.get(), word.c_str(), &place), "\"" + word + "\" cannot be a word of an enum");
        ++place;
    }
    return type;
}

TableWriter::TableWriter(std::size_t rows) : rows_(rows) {
    prepare();
}

Hid TableWriter::fixed_text(std::size_t width) {
    Hid type = text_of_size(width);
    check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "H5Tset_strpad");
    return type;
}

Hid TableWriter::variable_text() {
    return text_of_size(H5T_VARIABLE);
}

Hid TableWriter::row_type() const {
    std::size_t bytes = 0;
    for (const Column& column : columns_) {
        bytes += H5Tget_size(column.type.get());
    }
    Hid type(check(H5Tcreate(H5T_COMPOUND, std::max<std::size_t>(1, bytes)), "H5Tcreate"));
    std::size_t offset = 0;
    for (const Column& column : columns_) {
        check(H5Tinsert(type.get(), column.name.c_str(), offset, column.type.get()),
              "\"" + column.name + "\" cannot be a column");
        offset += H5Tget_size(column.type.get());
    }
    return type;
}

std::size_t TableWriter::type_bytes() const {
    std::size_t bytes = 0;
    check(H5Tencode(row_type().get(), nullptr, &bytes), "H5Tencode");
    return bytes;
}

/// Returns a row of `bytes` with the values of columns that an earlier table lacks.
std::vector<std::byte> TableWriter::row_of_missing_values(std::size_t bytes) const {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<std::byte> row(bytes);
    std::size_t offset = 0;
    for (const Column& column : columns_) {
        if (H5Tget_class(column.type.get()) == H5T_FLOAT) {
            std::memcpy(row.data() + offset, &nan, sizeof nan);
        }
        offset += H5Tget_size(column.type.get());
    }
    return row;
}

void TableWriter::write(hid_t at, const std::string& name, const LargeTable* earlier,
                        std::span<const RowRange> kept) const {
    const Hid type = row_type();
    hsize_t rows = rows_;
    for (const RowRange& range : kept) {
        rows += range.count;
    }
    const Hid space(check(H5Screate_simple(1, &rows, nullptr), "H5Screate_simple"));
    const Hid links(check(H5Pcreate(H5P_LINK_CREATE), "H5Pcreate"));
    check(H5Pset_create_intermediate_group(links.get(), 1), "H5Pset_create_intermediate_group");
    const Hid dataset(
        check(H5Dcreate2(at, name.c_str(), type.get(), space.get(), links.get(), H5P_DEFAULT, H5P_DEFAULT),
              "table " + name + " cannot be made"));
    const std::size_t stride = H5Tget_size(type.get());
    const std::size_t most = std::max<std::size_t>(1, block_bytes / stride);
    std::vector<std::byte> block(stride * std::min<std::size_t>(most, rows));
    hsize_t written = 0;
    const auto write_block = [&](hsize_t count) {
        check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &written, nullptr, &count, nullptr),
              "H5Sselect_hyperslab");
        const Hid memory(check(H5Screate_simple(1, &count, nullptr), "H5Screate_simple"));
        check(H5Dwrite(dataset.get(), type.get(), memory.get(), space.get(), H5P_DEFAULT, block.data()),
              "table " + name + " cannot be written");
        written += count;
    };
    const std::vector<std::byte> missing = row_of_missing_values(stride);
    for (const RowRange& range : kept) {
        for (std::size_t first = 0; first < range.count; first += most) {
            const std::size_t count = std::min(most, range.count - first);
            for (std::size_t row = 0; row < count; ++row) {
                std::copy(missing.begin(), missing.end(), block.begin() + static_cast<std::ptrdiff_t>(row * stride));
            }
            earlier->read({range.first + first, count}, type.get(), block.data());
            write_block(count);
        }
    }
    for (std::size_t first = 0; first < rows_; first += most) {
        const std::size_t count = std::min(most, rows_ - first);
        std::size_t offset = 0;
        for (const Column& column : columns_) {
            column.fill(first, count, block.data() + offset, stride);
            offset += H5Tget_size(column.type.get());
        }
        write_block(count);
    }
}

}  // namespace finch::hdf5
