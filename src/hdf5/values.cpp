// Attributes and texts.
#include "finch/base/error.hpp"
#include "finch/hdf5/file.hpp"

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

void write_value(hid_t at, const std::string& name, hid_t type, const void* value) {
    const Hid attribute(check(H5Acreate2(at, name.c_str(), type, scalar().get(), H5P_DEFAULT, H5P_DEFAULT),
                              "attribute " + name + " cannot be made"));
    check(H5Awrite(attribute.get(), type, value), "attribute " + name + " cannot be written");
}

void read_value(hid_t at, const std::string& name, hid_t type, void* value) {
    const Hid attribute(check_reading(H5Aopen(at, name.c_str(), H5P_DEFAULT), "there is no attribute " + name));
    check_reading(H5Aread(attribute.get(), type, value), "attribute " + name + " cannot be read");
}

/// Takes over a text that HDF5 allocated.
std::string taken(char* text) {
    std::string result = text == nullptr ? "" : text;
    H5free_memory(text);
    return result;
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

std::string read_text_attribute(hid_t at, const std::string& name) {
    char* text = nullptr;
    read_value(at, name, text_type().get(), &text);
    return taken(text);
}

std::int64_t read_int_attribute(hid_t at, const std::string& name) {
    std::int64_t value = 0;
    read_value(at, name, H5T_NATIVE_INT64, &value);
    return value;
}

double read_double_attribute(hid_t at, const std::string& name) {
    double value = 0;
    read_value(at, name, H5T_NATIVE_DOUBLE, &value);
    return value;
}

std::uint64_t read_unsigned_attribute(hid_t at, const std::string& name) {
    std::uint64_t value = 0;
    read_value(at, name, H5T_NATIVE_UINT64, &value);
    return value;
}

bool has_attribute(hid_t at, const std::string& name) {
    return H5Aexists(at, name.c_str()) > 0;
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
    const Hid dataset(check_reading(H5Dopen2(at, name.c_str(), H5P_DEFAULT), "there is no text " + name));
    char* text = nullptr;
    check_reading(H5Dread(dataset.get(), text_type().get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &text),
                  "text " + name + " cannot be read");
    return taken(text);
}

}  // namespace finch::hdf5
