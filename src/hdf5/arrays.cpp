#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/file.hpp"

#include "stored.hpp"

#include <algorithm>

namespace finch::hdf5 {
namespace {

hid_t native(const std::vector<float>&) {
    return H5T_NATIVE_FLOAT;
}
hid_t native(const std::vector<double>&) {
    return H5T_NATIVE_DOUBLE;
}
hid_t native(const std::vector<std::int64_t>&) {
    return H5T_NATIVE_INT64;
}
hid_t native(const std::vector<std::uint8_t>&) {
    return H5T_NATIVE_UINT8;
}

Hid space_of(const std::vector<std::int64_t>& shape) {
    if (shape.empty()) {
        return Hid(check(H5Screate(H5S_SCALAR), "H5Screate"));
    }
    const std::vector<hsize_t> sizes(shape.begin(), shape.end());
    return Hid(check(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), "H5Screate_simple"));
}

using Values = decltype(NamedArray::values);

constexpr std::ptrdiff_t deepest = 16;      // nesting depth of groups
constexpr std::uint64_t most_widening = 8;  // bytes of memory per byte in the file: 8-bit numbers become 64 bits

/// Returns an empty vector of the type that holds a dataset's numbers. Returns nothing if the dataset holds no numbers,
/// or numbers of more than 64 bits (floats: 128 bits).
std::optional<Values> kind_of(hid_t dataset) {
    const Hid type(check_reading(H5Dget_type(dataset), "H5Dget_type"));
    const std::size_t bytes = H5Tget_size(type.get());
    const H5T_class_t kind = H5Tget_class(type.get());
    if (kind == H5T_INTEGER && bytes == 1 && H5Tget_sign(type.get()) == H5T_SGN_NONE) {
        return Values(std::vector<std::uint8_t>());
    }
    if (kind == H5T_INTEGER && bytes <= sizeof(std::int64_t)) {
        return Values(std::vector<std::int64_t>());
    }
    if (kind == H5T_FLOAT && bytes <= sizeof(float)) {
        return Values(std::vector<float>());
    }
    if (kind == H5T_FLOAT && bytes <= sizeof(long double)) {
        return Values(std::vector<double>());
    }
    return std::nullopt;
}

/// A callback of H5Lvisit that records the name of every link. The callback ends the visit at the depth `deepest`,
/// before the recursion exhausts the stack.
herr_t note_name(hid_t, const char* name, const H5L_info_t*, void* names) {
    const std::string text = name;
    static_cast<std::vector<std::string>*>(names)->push_back(text);
    return std::count(text.begin(), text.end(), '/') < deepest ? 0 : -1;
}

}  // namespace

void write_array(hid_t at, const NamedArray& array) {
    const std::size_t size = std::visit([](const auto& values) { return values.size(); }, array.values);
    if (size != product(array.shape, "array " + array.name)) {
        throw Error(
            fmt::format("array {} has {} values, but the shape ({})", array.name, size, fmt::join(array.shape, ", ")));
    }
    const Hid links(check(H5Pcreate(H5P_LINK_CREATE), "H5Pcreate"));
    check(H5Pset_create_intermediate_group(links.get(), 1), "H5Pset_create_intermediate_group");
    const auto write = [&](const auto& values) {
        const Hid dataset(check(H5Dcreate2(at, array.name.c_str(), native(values), space_of(array.shape).get(),
                                           links.get(), H5P_DEFAULT, H5P_DEFAULT),
                                "array " + array.name + " cannot be made"));
        if (!values.empty()) {
            check(H5Dwrite(dataset.get(), native(values), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
                  "array " + array.name + " cannot be written");
        }
    };
    std::visit(write, array.values);
}

NamedArray read_array(hid_t at, const std::string& name) {
    const Hid dataset = open_dataset(at, name);
    auto kind = kind_of(dataset.get());
    if (!kind) {
        throw FileError(name + " does not hold numbers");
    }
    NamedArray array{name, shape_of(dataset.get()), std::move(*kind)};
    const auto read = [&](auto& values) {
        values.resize(product(array.shape, name));
        if (!values.empty()) {
            check_reading(H5Dread(dataset.get(), native(values), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
                          "array " + name + " cannot be read");
        }
    };
    std::visit(read, array.values);
    return array;
}

std::vector<std::int64_t> read_shape(hid_t at, const std::string& name) {
    return shape_of(open_dataset(at, name).get());
}

Contiguous read_place(hid_t at, const std::string& name) {
    const Hid dataset = open_dataset(at, name);
    const Hid creation(check_reading(H5Dget_create_plist(dataset.get()), "H5Dget_create_plist"));
    if (const H5D_layout_t layout = H5Pget_layout(creation.get()); layout != H5D_CONTIGUOUS) {
        const bool is_packed = H5Pget_nfilters(creation.get()) > 0;
        throw FileError(fmt::format("{} is stored {}", name,
                                    layout != H5D_CHUNKED ? "within its header"
                                    : is_packed           ? "in chunks, by filters"
                                                          : "in chunks"));
    }
    const Hid type(check_reading(H5Dget_type(dataset.get()), "H5Dget_type"));
    const bool is_float = H5Tequal(type.get(), H5T_IEEE_F32LE) > 0;
    if (!is_float && H5Tequal(type.get(), H5T_STD_U8LE) <= 0 && H5Tequal(type.get(), H5T_STD_U8BE) <= 0) {
        throw FileError(name + " holds numbers that are neither uint8 nor little-endian float32");
    }
    const haddr_t offset = H5Dget_offset(dataset.get());
    if (offset == HADDR_UNDEF) {
        throw FileError(name + " has no place in the file");
    }
    return {static_cast<std::int64_t>(offset), is_float};
}

NamedArrays read_arrays(hid_t at, const std::function<bool(const std::string&)>& wanted) {
    std::vector<std::string> names;
    check_reading(H5Lvisit(at, H5_INDEX_NAME, H5_ITER_INC, note_name, &names), "groups are nested too deeply");
    NamedArrays arrays;
    std::uint64_t bytes = 0;
    for (const std::string& name : names) {
        if (wanted && !wanted(name)) {
            continue;
        }
        const Hid object = open_object(at, name);
        if (H5Iget_type(object.get()) == H5I_DATASET && kind_of(object.get())) {
            arrays.push_back(read_array(at, name));
            std::visit([&](const auto& values) { bytes += values.size() * sizeof values[0]; }, arrays.back().values);
        }
        if (bytes > most_widening * file_bytes(at)) {
            throw FileError(name + " and the arrays before it claim more than a file of this size can hold");
        }
    }
    return arrays;
}

}  // namespace finch::hdf5
