#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/table.hpp"

#include "stored.hpp"

#include <algorithm>

namespace finch::hdf5 {
namespace {

constexpr std::size_t rows_at_once = 8192;

}  // namespace

LargeTable::LargeTable(hid_t at, std::string name, std::string key) : name_(std::move(name)), key_(std::move(key)) {
    dataset_ = open_table(at, name_);
    space_ = Hid(check_reading(H5Dget_space(dataset_.get()), "H5Dget_space"));
    const Hid type(check_reading(H5Dget_type(dataset_.get()), "H5Dget_type"));
    if (H5Sget_simple_extent_ndims(space_.get()) != 1 || H5Tget_class(type.get()) != H5T_COMPOUND) {
        throw FileError(name_ + " is no table");
    }
    const int column = H5Tget_member_index(type.get(), key_.c_str());
    if (column < 0 || H5Tget_member_class(type.get(), static_cast<unsigned>(column)) != H5T_INTEGER) {
        throw FileError(fmt::format("{} has no column {} of whole numbers", name_, key_));
    }
    rows_ = static_cast<std::size_t>(check_reading(H5Sget_simple_extent_npoints(space_.get()), "H5Sget_simple_extent"));
}

void LargeTable::read(RowRange rows, hid_t type, std::byte* out) const {
    const hsize_t first = rows.first;
    const hsize_t count = rows.count;
    check_reading(H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr),
                  "H5Sselect_hyperslab");
    const Hid memory(check_reading(H5Screate_simple(1, &count, nullptr), "H5Screate_simple"));
    check_reading(H5Dread(dataset_.get(), type, memory.get(), space_.get(), H5P_DEFAULT, out),
                  "table " + name_ + " cannot be read");
}

void LargeTable::visit(const std::function<void(std::span<const std::uint64_t>)>& visit) const {
    const Hid type(check_reading(H5Tcreate(H5T_COMPOUND, sizeof(std::uint64_t)), "H5Tcreate"));
    check_reading(H5Tinsert(type.get(), key_.c_str(), 0, H5T_NATIVE_UINT64), "H5Tinsert");
    std::vector<std::uint64_t> values(std::min(rows_at_once, rows_));
    for (std::size_t first = 0; first < rows_; first += rows_at_once) {
        const std::size_t count = std::min(rows_at_once, rows_ - first);
        read({first, count}, type.get(), reinterpret_cast<std::byte*>(values.data()));
        visit(std::span(values).first(count));
    }
}

}  // namespace finch::hdf5
