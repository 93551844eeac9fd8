#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/file.hpp"

#include <algorithm>

namespace finch::hdf5 {
namespace {

template <class T>
hid_t native();
template <>
hid_t native<float>() {
    return H5T_NATIVE_FLOAT;
}
template <>
hid_t native<double>() {
    return H5T_NATIVE_DOUBLE;
}
template <>
hid_t native<std::int64_t>() {
    return H5T_NATIVE_INT64;
}
template <>
hid_t native<std::uint8_t>() {
    return H5T_NATIVE_UINT8;
}

Hid text_type(std::size_t size) {
    Hid type(check(H5Tcopy(H5T_C_S1), "H5Tcopy"));
    check(H5Tset_size(type.get(), std::max<std::size_t>(1, size)), "H5Tset_size");
    check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "H5Tset_strpad");
    check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset");
    return type;
}

void write_attribute(hid_t at, const std::string& name, hid_t type, const void* value) {
    const Hid space(check(H5Screate(H5S_SCALAR), "H5Screate"));
    const Hid attribute(
        check(H5Acreate2(at, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT), "attribute " + name));
    check(H5Awrite(attribute.get(), type, value), "attribute " + name);
}

Hid open_attribute(hid_t at, const std::string& name) {
    Hid attribute(H5Aopen(at, name.c_str(), H5P_DEFAULT));
    if (!attribute) {
        throw FileError(fmt::format("there is no attribute '{}'", name));
    }
    return attribute;
}

template <class T>
T read_attribute(hid_t at, const std::string& name) {
    const Hid attribute = open_attribute(at, name);
    T value{};
    check(H5Aread(attribute.get(), native<T>(), &value), "attribute " + name);
    return value;
}

/// Text without the padding at its end.
std::string unpadded(std::string text) {
    text.resize(std::min(text.size(), text.find('\0')));
    return text;
}

Hid open_dataset(hid_t at, const std::string& name) {
    Hid dataset(H5Dopen2(at, name.c_str(), H5P_DEFAULT));
    if (!dataset) {
        throw FileError(fmt::format("there is no dataset '{}'", name));
    }
    return dataset;
}

Hid create_dataset(hid_t at, const std::string& name, hid_t type, hid_t space) {
    const Hid links(check(H5Pcreate(H5P_LINK_CREATE), "H5Pcreate"));
    check(H5Pset_create_intermediate_group(links.get(), 1), "H5Pset_create_intermediate_group");
    return Hid(
        check(H5Dcreate2(at, name.c_str(), type, space, links.get(), H5P_DEFAULT, H5P_DEFAULT), "dataset " + name));
}

template <class T>
std::vector<T> read_values(hid_t dataset, const std::string& name, std::size_t count) {
    std::vector<T> values(count);
    if (count > 0) {
        check(H5Dread(dataset, native<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "dataset " + name);
    }
    return values;
}

herr_t collect_name(hid_t, const char* name, const H5O_info_t* info, void* names) {
    if (info->type == H5O_TYPE_DATASET) {
        static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    }
    return 0;
}

}  // namespace

void write_attribute(hid_t at, const std::string& name, const std::string& value) {
    constexpr std::size_t most = 65000;  // HDF5 keeps at most 64 KiB in an attribute
    if (value.size() > most) {
        throw ApiError(fmt::format("HDF5: attribute {}: {} bytes are too many", name, value.size()));
    }
    const Hid type = text_type(value.size());
    const std::string padded = value.empty() ? std::string(1, '\0') : value;
    write_attribute(at, name, type.get(), padded.data());
}

void write_attribute(hid_t at, const std::string& name, std::int64_t value) {
    write_attribute(at, name, H5T_NATIVE_INT64, &value);
}

void write_attribute(hid_t at, const std::string& name, double value) {
    write_attribute(at, name, H5T_NATIVE_DOUBLE, &value);
}

std::string read_text_attribute(hid_t at, const std::string& name) {
    const Hid attribute = open_attribute(at, name);
    const Hid type(check(H5Aget_type(attribute.get()), "attribute " + name));
    std::string value(H5Tget_size(type.get()), '\0');
    check(H5Aread(attribute.get(), type.get(), value.data()), "attribute " + name);
    return unpadded(std::move(value));
}

std::int64_t read_int_attribute(hid_t at, const std::string& name) {
    return read_attribute<std::int64_t>(at, name);
}

double read_double_attribute(hid_t at, const std::string& name) {
    return read_attribute<double>(at, name);
}

void write_array(hid_t at, const NamedArray& array) {
    const std::vector<hsize_t> shape(array.shape.begin(), array.shape.end());
    const Hid space(check(
        shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
        "shape of " + array.name));
    std::visit(
        [&](const auto& values) {
            using T = typename std::decay_t<decltype(values)>::value_type;
            const Hid dataset = create_dataset(at, array.name, native<T>(), space.get());
            if (!values.empty()) {
                check(H5Dwrite(dataset.get(), native<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
                      "dataset " + array.name);
            }
        },
        array.values);
}

NamedArray read_array(hid_t at, const std::string& name) {
    const Hid dataset = open_dataset(at, name);
    const Hid space(check(H5Dget_space(dataset.get()), "dataset " + name));
    const Hid type(check(H5Dget_type(dataset.get()), "dataset " + name));
    std::vector<hsize_t> shape(
        static_cast<std::size_t>(check(H5Sget_simple_extent_ndims(space.get()), "dataset " + name)));
    H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr);
    const auto count = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get()));
    NamedArray array{name, {shape.begin(), shape.end()}, {}};
    const bool is_float = H5Tget_class(type.get()) == H5T_FLOAT;
    const std::size_t size = H5Tget_size(type.get());
    if (!is_float && H5Tget_class(type.get()) != H5T_INTEGER) {
        throw FileError(fmt::format("the dataset '{}' holds no numbers", name));
    }
    if (is_float && size <= 4) {
        array.values = read_values<float>(dataset.get(), name, count);
    } else if (is_float) {
        array.values = read_values<double>(dataset.get(), name, count);
    } else if (size == 1 && H5Tget_sign(type.get()) == H5T_SGN_NONE) {
        array.values = read_values<std::uint8_t>(dataset.get(), name, count);
    } else {
        array.values = read_values<std::int64_t>(dataset.get(), name, count);
    }
    return array;
}

NamedArrays read_arrays(hid_t at) {
    std::vector<std::string> names;
    check(H5Ovisit(at, H5_INDEX_NAME, H5_ITER_INC, collect_name, &names), "list of datasets");
    NamedArrays arrays;
    for (const std::string& name : names) {
        const Hid dataset = open_dataset(at, name);
        const Hid type(check(H5Dget_type(dataset.get()), "dataset " + name));
        const H5T_class_t kind = H5Tget_class(type.get());
        if (kind == H5T_FLOAT || kind == H5T_INTEGER) {
            arrays.push_back(read_array(at, name));
        }
    }
    return arrays;
}

void write_text(hid_t at, const std::string& name, const std::string& text) {
    const Hid type = text_type(text.size());
    const Hid space(check(H5Screate(H5S_SCALAR), "H5Screate"));
    const Hid dataset = create_dataset(at, name, type.get(), space.get());
    const std::string padded = text.empty() ? std::string(1, '\0') : text;
    check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, padded.data()), "dataset " + name);
}

std::string read_text(hid_t at, const std::string& name) {
    const Hid dataset = open_dataset(at, name);
    const Hid type(check(H5Dget_type(dataset.get()), "dataset " + name));
    std::string text(H5Tget_size(type.get()), '\0');
    check(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "dataset " + name);
    return unpadded(std::move(text));
}

}  // namespace finch::hdf5
