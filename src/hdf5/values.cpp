// Attributes and texts.
#include "finch/base/error.hpp"
#include "finch/hdf5/file.hpp"

#include "stored.hpp"

#include <algorithm>
#include <utility>

namespace finch::hdf5 {
namespace {

Hid text_type() {
    Hid type(check(H5Tcopy(H5T_C_S1), "H5Tcopy"));
    check(H5Tset_size(type.get(), H5T_VARIABLE), "H5Tset_size");
    check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset");
    return type;
}

Hid scalar() {
    return Hid(check(H5Screate(H5S_SCALAR), "H5Screate"));
}

void write_value(hid_t at, const std::string& name, hid_t type, const void* value, const Hid& space = scalar()) {
    const Hid attribute(check(H5Acreate2(at, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                              "attribute " + name + " cannot be made"));
    check(H5Awrite(attribute.get(), type, value), "attribute " + name + " cannot be written");
}

/// Throws FileError unless `space` holds one element and `type` has the class `wanted`.
void check_single(hid_t space, hid_t type, H5T_class_t wanted, const std::string& what) {
    if (H5Sget_simple_extent_type(space) != H5S_SCALAR || H5Tget_class(type) != wanted) {
        throw FileError(what + " is no single " + (wanted == H5T_STRING ? "text" : "number"));
    }
}

Hid open_attribute(hid_t at, const std::string& name) {
    if (!has_attribute(at, name)) {
        throw FileError("there is no attribute " + name);
    }
    return Hid(check_reading(H5Aopen(at, name.c_str(), H5P_DEFAULT), "attribute " + name + " cannot be opened"));
}

/// Opens the attribute `name` and stores its type in `type`. Throws FileError unless the attribute is one value of the
/// class `wanted`.
Hid open_attribute(hid_t at, const std::string& name, H5T_class_t wanted, Hid& type) {
    Hid attribute = open_attribute(at, name);
    const Hid space(check_reading(H5Aget_space(attribute.get()), "H5Aget_space"));
    type = Hid(check_reading(H5Aget_type(attribute.get()), "H5Aget_type"));
    check_single(space.get(), type.get(), wanted, "attribute " + name);
    return attribute;
}

template <class Number>
Number read_number(hid_t at, const std::string& name, H5T_class_t wanted, hid_t memory_type) {
    Hid type;
    const Hid attribute = open_attribute(at, name, wanted, type);
    Number value = 0;
    if (H5Tget_size(type.get()) > sizeof value) {
        throw FileError("attribute " + name + " is a number of more than 64 bits");
    }
    check_reading(H5Aread(attribute.get(), memory_type, &value), "attribute " + name + " cannot be read");
    return value;
}

/// Removes the padding from `text`, a text with the fixed length of `type`.
std::string without_padding(std::string text, hid_t type) {
    text.resize(text.find_last_not_of(H5Tget_strpad(type) == H5T_STR_SPACEPAD ? ' ' : '\0') + 1);
    return text.substr(0, text.find('\0'));
}

/// Reads one text of fixed or variable length with `read(type, to)`. A fixed-length text may have at most `most` bytes.
template <class Read>
std::string read_one_text(hid_t type, std::uint64_t most, const std::string& what, Read read) {
    if (H5Tis_variable_str(type) > 0) {
        char* text = nullptr;
        check_reading(read(type, static_cast<void*>(&text)), what + " cannot be read");
        std::string result = text == nullptr ? "" : text;
        H5free_memory(text);
        return result;
    }
    const std::size_t size = H5Tget_size(type);
    if (size > most) {
        throw FileError(what + " is longer than the file can hold");
    }
    std::string text(size, '\0');
    check_reading(read(type, static_cast<void*>(text.data())), what + " cannot be read");
    return without_padding(std::move(text), type);
}

}  // namespace

void write_attribute(hid_t at, const std::string& name, const std::string& value) {
    const char* text = value.c_str();
    write_value(at, name, text_type().get(), &text);
}

void write_attribute(hid_t at, const std::string& name, std::int64_t value) {
    write_value(at, name, H5T_NATIVE_INT64, &value);
}

void write_attribute(hid_t at, const std::string& name, double value) {
    write_value(at, name, H5T_NATIVE_DOUBLE, &value);
}

void write_unsigned_attribute(hid_t at, const std::string& name, std::uint64_t value) {
    write_value(at, name, H5T_NATIVE_UINT64, &value);
}

void write_texts_attribute(hid_t at, const std::string& name, const std::vector<std::string>& values) {
    std::vector<const char*> texts(values.size());
    std::transform(values.begin(), values.end(), texts.begin(), [](const std::string& text) { return text.c_str(); });
    const hsize_t count = texts.size();
    const Hid space(check(H5Screate_simple(1, &count, nullptr), "H5Screate_simple"));
    write_value(at, name, text_type().get(), texts.data(), space);
}

std::vector<std::string> read_texts_attribute(hid_t at, const std::string& name) {
    const std::string what = "attribute " + name;
    const Hid attribute = open_attribute(at, name);
    const Hid space(check_reading(H5Aget_space(attribute.get()), "H5Aget_space"));
    const Hid type(check_reading(H5Aget_type(attribute.get()), "H5Aget_type"));
    if (H5Sget_simple_extent_ndims(space.get()) != 1 || H5Tget_class(type.get()) != H5T_STRING) {
        throw FileError(what + " is no list of texts");
    }
    const auto count = static_cast<std::size_t>(check_reading(H5Sget_simple_extent_npoints(space.get()), what));
    const std::size_t size = H5Tget_size(type.get());
    if (count > file_bytes(at) / size) {
        throw FileError(what + " is longer than the file can hold");
    }
    std::vector<std::string> texts(count);
    if (H5Tis_variable_str(type.get()) > 0) {
        std::vector<char*> read(count);
        check_reading(H5Aread(attribute.get(), type.get(), read.data()), what + " cannot be read");
        std::transform(read.begin(), read.end(), texts.begin(), [](char* text) { return text == nullptr ? "" : text; });
        H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, read.data());
        return texts;
    }
    std::string all(count * size, '\0');
    check_reading(H5Aread(attribute.get(), type.get(), all.data()), what + " cannot be read");
    for (std::size_t i = 0; i < count; ++i) {
        texts[i] = without_padding(all.substr(i * size, size), type.get());
    }
    return texts;
}

std::string read_text_attribute(hid_t at, const std::string& name) {
    Hid type;
    const Hid attribute = open_attribute(at, name, H5T_STRING, type);
    return read_one_text(type.get(), file_bytes(at), "attribute " + name,
                         [&](hid_t as, void* to) { return H5Aread(attribute.get(), as, to); });
}

std::int64_t read_int_attribute(hid_t at, const std::string& name) {
    return read_number<std::int64_t>(at, name, H5T_INTEGER, H5T_NATIVE_INT64);
}

double read_double_attribute(hid_t at, const std::string& name) {
    return read_number<double>(at, name, H5T_FLOAT, H5T_NATIVE_DOUBLE);
}

std::uint64_t read_unsigned_attribute(hid_t at, const std::string& name) {
    return read_number<std::uint64_t>(at, name, H5T_INTEGER, H5T_NATIVE_UINT64);
}

bool has_attribute(hid_t at, const std::string& name) {
    return check_reading(H5Aexists(at, name.c_str()), "attribute " + name + " cannot be read") > 0;
}

void write_text(hid_t at, const std::string& name, const std::string& text) {
    const Hid links(check(H5Pcreate(H5P_LINK_CREATE), "H5Pcreate"));
    check(H5Pset_create_intermediate_group(links.get(), 1), "H5Pset_create_intermediate_group");
    const Hid type = text_type();
    const Hid dataset(
        check(H5Dcreate2(at, name.c_str(), type.get(), scalar().get(), links.get(), H5P_DEFAULT, H5P_DEFAULT),
              "text " + name + " cannot be made"));
    const char* bytes = text.c_str();
    check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &bytes),
          "text " + name + " cannot be written");
}

std::string read_text(hid_t at, const std::string& name) {
    const Hid dataset = open_dataset(at, name);
    const Hid space(check_reading(H5Dget_space(dataset.get()), "H5Dget_space"));
    const Hid type(check_reading(H5Dget_type(dataset.get()), "H5Dget_type"));
    check_single(space.get(), type.get(), H5T_STRING, "text " + name);
    return read_one_text(type.get(), file_bytes(at), "text " + name, [&](hid_t as, void* to) {
        return H5Dread(dataset.get(), as, H5S_ALL, H5S_ALL, H5P_DEFAULT, to);
    });
}

}  // namespace finch::hdf5
