#include "finch/hdf5/table.hpp"

#include "stored.hpp"

#include <algorithm>
#include <new>

namespace finch::hdf5 {
namespace {

constexpr std::size_t conversion_bytes = std::size_t{1} << 20;  // libhdf5's default

/// Returns a text that HDF5 allocated, and frees the original.
std::string taken(char* text) {
    std::string result = text == nullptr ? "" : text;
    H5free_memory(text);
    return result;
}

/// Maps each number of an enum to the index of its word in `words`; to −1 if the word is not there.
std::map<std::int32_t, std::int32_t> places(hid_t type, std::span<const std::string> words) {
    std::map<std::int32_t, std::int32_t> found;
    const int members = H5Tget_nmembers(type);
    for (int member = 0; member < members; ++member) {
        std::int32_t number = 0;
        check_reading(H5Tget_member_value(type, static_cast<unsigned>(member), &number), "H5Tget_member_value");
        const std::string word = taken(H5Tget_member_name(type, static_cast<unsigned>(member)));
        const auto place = std::find(words.begin(), words.end(), word);
        found[number] = place == words.end() ? -1 : static_cast<std::int32_t>(place - words.begin());
    }
    return found;
}

}  // namespace

TableReader::TableReader(hid_t at, std::string name) : TableReader(at, std::move(name), NothingYet{}) {
    read({0, all_rows_});
}

TableReader::TableReader(hid_t at, std::string name, NothingYet)
    : name_(std::move(name)), dataset_(open_table(at, name_)) {
    type_ = Hid(check_reading(H5Dget_type(dataset_.get()), "H5Dget_type"));
    const Hid space(check_reading(H5Dget_space(dataset_.get()), "H5Dget_space"));
    if (H5Tget_class(type_.get()) != H5T_COMPOUND || H5Sget_simple_extent_ndims(space.get()) != 1) {
        throw FileError(name_ + " is not a table");
    }
    all_rows_ = static_cast<std::size_t>(product(shape_of(dataset_.get()), name_));
    row_bytes_ = std::max<std::size_t>(1, H5Tget_size(type_.get()));
    texts_.bytes_left = file_bytes(at);
    const int members = H5Tget_nmembers(type_.get());
    for (int i = 0; i < members; ++i) {
        const auto member = static_cast<unsigned>(i);
        const std::string column = taken(H5Tget_member_name(type_.get(), member));
        const std::size_t offset = H5Tget_member_offset(type_.get(), member);
        Hid type(check_reading(H5Tget_member_type(type_.get(), member), "H5Tget_member_type"));
        if (offset > row_bytes_ || H5Tget_size(type.get()) > row_bytes_ - offset) {
            refuse(column, "goes beyond the row");
        }
        columns_.emplace(column, Column{offset, std::move(type)});
    }
}

void TableReader::read_in_blocks(hid_t at, const std::string& name,
                                 const std::function<void(const TableReader& block, std::size_t first)>& visit) {
    TableReader block(at, name, NothingYet{});
    const std::size_t most = std::max<std::size_t>(1, block_bytes / block.row_bytes_);
    std::size_t first = 0;
    do {
        block.read({first, std::min(most, block.all_rows_ - first)});
        visit(block, first);
        first += block.rows_;
    } while (first < block.all_rows_);
}

void TableReader::read(RowRange rows) {
    if (rows.count > rows_ || bytes_ == nullptr) {
        bytes_ = std::make_unique<std::byte[]>(rows.count * row_bytes_);
    }
    rows_ = rows.count;
    if (rows_ == 0) {
        return;
    }
    texts_.memory.release();
    const Hid transfer(check(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate"));
    check(H5Pset_vlen_mem_manager(transfer.get(), Texts::allocate, &texts_, Texts::keep, nullptr),
          "H5Pset_vlen_mem_manager");
    // By default libhdf5 clears a buffer of 1 MiB for each table, even a small one. A variable-length text takes 8
    // bytes in memory and 16 in the file, hence the factor 2.
    const std::size_t rows_at_once = std::clamp<std::size_t>(conversion_bytes / (2 * row_bytes_), 1, rows_);
    check(H5Pset_buffer(transfer.get(), rows_at_once * 2 * row_bytes_, nullptr, nullptr), "H5Pset_buffer");
    const hsize_t first = rows.first;
    const hsize_t count = rows.count;
    const Hid file_space(check_reading(H5Dget_space(dataset_.get()), "H5Dget_space"));
    check(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr),
          "H5Sselect_hyperslab");
    const Hid memory_space(check(H5Screate_simple(1, &count, nullptr), "H5Screate_simple"));
    check_reading(
        H5Dread(dataset_.get(), type_.get(), memory_space.get(), file_space.get(), transfer.get(), bytes_.get()),
        "table " + name_ + " cannot be read");
}

void* TableReader::Texts::allocate(std::size_t size, void* texts) {
    auto& self = *static_cast<Texts*>(texts);
    if (size > self.bytes_left) {
        return nullptr;
    }
    self.bytes_left -= size;
    try {
        return self.memory.allocate(size);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void TableReader::refuse(const std::string& column_name, const std::string& why) const {
    throw FileError(name_ + ": column " + column_name + " " + why);
}

const TableReader::Column& TableReader::find(const std::string& column_name) const {
    const auto found = columns_.find(column_name);
    if (found == columns_.end()) {
        refuse(column_name, "is missing");
    }
    return found->second;
}

const std::byte* TableReader::cells(const std::string& column_name, hid_t type) const {
    const Column& column = find(column_name);
    if (H5Tequal(column.type.get(), type) <= 0) {
        refuse(column_name, "has another type");
    }
    return bytes_.get() + column.offset;
}

std::vector<std::int32_t> TableReader::enumeration(const std::string& column_name,
                                                   std::span<const std::string> words) const {
    const Column& column = find(column_name);
    if (H5Tget_class(column.type.get()) != H5T_ENUM || H5Tget_size(column.type.get()) != sizeof(std::int32_t)) {
        refuse(column_name, "is not an enum");
    }
    const auto place_of = places(column.type.get(), words);
    std::vector<std::int32_t> values(rows_);
    const std::byte* cell = bytes_.get() + column.offset;
    for (std::int32_t& value : values) {
        std::memcpy(&value, cell, sizeof value);
        cell += row_bytes_;
        const auto place = place_of.find(value);
        if (place == place_of.end() || place->second < 0) {
            refuse(column_name, "holds " + std::to_string(value) + ", which means nothing here");
        }
        value = place->second;
    }
    return values;
}

std::vector<std::string> TableReader::text(const std::string& column_name) const {
    const Column& column = find(column_name);
    if (H5Tget_class(column.type.get()) != H5T_STRING) {
        refuse(column_name, "is not text");
    }
    const bool is_variable = H5Tis_variable_str(column.type.get()) > 0;
    const std::size_t width = H5Tget_size(column.type.get());
    std::vector<std::string> values;
    values.reserve(rows_);
    const std::byte* cell = bytes_.get() + column.offset;
    for (std::size_t row = 0; row < rows_; ++row, cell += row_bytes_) {
        if (is_variable) {
            const char* text = nullptr;
            std::memcpy(&text, cell, sizeof text);
            values.emplace_back(text == nullptr ? "" : text);
        } else {
            std::string text(reinterpret_cast<const char*>(cell), width);
            const std::size_t last = text.find_last_not_of('\0');
            text.resize(last == std::string::npos ? 0 : last + 1);
            values.push_back(std::move(text));
        }
    }
    return values;
}

}  // namespace finch::hdf5
