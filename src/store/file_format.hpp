#pragma once

#include "finch/base/format.hpp"
#include "finch/base/version.hpp"
#include "finch/hdf5/file.hpp"
#include "finch/search/individual.hpp"

#include <string>

namespace finch::store {

/// The version of the run directory's HDF5 files: the version of an individual's bytes, which all these files contain.
inline constexpr std::int64_t file_version = search::individual_version;

/// Writes the attributes format, version and program_version. `name` is the kind of file, such as "finch population".
inline void write_format(hid_t file, const std::string& name) {
    hdf5::write_attribute(file, "format", name);
    hdf5::write_attribute(file, "version", file_version);
    hdf5::write_attribute(file, "program_version", program_version());
}

/// Returns the version in which the file was written. Throws FileError for another kind of file or a newer version.
inline std::int64_t read_version(hid_t file, const std::string& name) {
    const std::string format = hdf5::read_text_attribute(file, "format");
    if (format != name) {
        throw FileError(fmt::format("is a \"{}\" file, expected a \"{}\" file", format, name));
    }
    const std::int64_t version = hdf5::read_int_attribute(file, "version");
    if (version < 1 || version > file_version) {
        throw FileError(
            fmt::format("has format version {}, written by finch {}; this is finch {}, which reads versions "
                        "up to {}: use the program that wrote it, or a later one",
                        version, hdf5::read_text_attribute(file, "program_version"), program_version(), file_version));
    }
    return version;
}

}  // namespace finch::store
