#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/file.hpp"

#include <functional>
#include <numeric>

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

std::size_t elements(const std::vector<std::int64_t>& shape) {
    return static_cast<std::size_t>(
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<std::int64_t>()));
}

Hid space_of(const std::vector<std::int64_t>& shape) {
    if (shape.empty()) {
        return Hid(check(H5Screate(H5S_SCALAR), "H5Screate"));
    }
    const std::vector<hsize_t> sizes(shape.begin(), shape.end());
    return Hid(check(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), "H5Screate_simple"));
}

std::vector<std::int64_t> shape_of(hid_t dataset) {
    const Hid space(check_reading(H5Dget_space(dataset), "H5Dget_space"));
    std::vector<hsize_t> sizes(
        static_cast<std::size_t>(check_reading(H5Sget_simple_extent_ndims(space.get()), "H5Sget_simple_extent_ndims")));
    check_reading(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr), "H5Sget_simple_extent_dims");
    return {sizes.begin(), sizes.end()};
}

using Values = decltype(NamedArray::values);

/// Empty values of the kind that holds a dataset's numbers; nothing where it holds no numbers.
std::optional<Values> kind_of(hid_t dataset) {
    const Hid type(check_reading(H5Dget_type(dataset), "H5Dget_type"));
    const std::size_t bytes = H5Tget_size(type.get());
    switch (H5Tget_class(type.get())) {
        case H5T_INTEGER:
            if (bytes == 1 && H5Tget_sign(type.get()) == H5T_SGN_NONE) {
                return Values(std::vector<std::uint8_t>());
            }
            return Values(std::vector<std::int64_t>());
        case H5T_FLOAT:
            if (bytes <= sizeof(float)) {
                return Values(std::vector<float>());
            }
            return Values(std::vector<double>());
        default:
            return std::nullopt;
    }
}

/// H5Lvisit's: notes the name of every link.
herr_t note_name(hid_t, const char* name, const H5L_info_t*, void* names) {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    return 0;
}

}  // namespace

void write_array(hid_t at, const NamedArray& array) {
    const std::size_t size = std::visit([](const auto& values) { return values.size(); }, array.values);
    if (size != elements(array.shape)) {
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
    const Hid dataset(check_reading(H5Dopen2(at, name.c_str(), H5P_DEFAULT), "there is no array " + name));
    auto kind = kind_of(dataset.get());
    if (!kind) {
        throw FileError(name + " does not hold numbers");
    }
    NamedArray array{name, shape_of(dataset.get()), std::move(*kind)};
    const auto read = [&](auto& values) {
        values.resize(elements(array.shape));
        if (!values.empty()) {
            check_reading(H5Dread(dataset.get(), native(values), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
                          "array " + name + " cannot be read");
        }
    };
    std::visit(read, array.values);
    return array;
}

NamedArrays read_arrays(hid_t at) {
    std::vector<std::string> names;
    check_reading(H5Lvisit(at, H5_INDEX_NAME, H5_ITER_INC, note_name, &names), "H5Lvisit");
    NamedArrays arrays;
    for (const std::string& name : names) {
        const Hid object(check_reading(H5Oopen(at, name.c_str(), H5P_DEFAULT), name + " cannot be opened"));
        if (H5Iget_type(object.get()) == H5I_DATASET && kind_of(object.get())) {
            arrays.push_back(read_array(at, name));
        }
    }
    return arrays;
}

}  // namespace finch::hdf5
