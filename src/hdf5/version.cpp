#include "finch/hdf5/version.hpp"

#include "finch/base/format.hpp"
#include "finch/hdf5/file.hpp"

#include <cstdlib>

namespace finch::hdf5 {

std::string library_version() {
    prepare();
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    check(H5get_libversion(&major, &minor, &release), "H5get_libversion");
    const std::string loaded = fmt::format("{}.{}.{}", major, minor, release);
    const std::string built = fmt::format("{}.{}.{}", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
    const char* locking = std::getenv("HDF5_USE_FILE_LOCKING");
    return fmt::format("{}{}, HDF5_USE_FILE_LOCKING={}", loaded, loaded == built ? "" : ", built with " + built,
                       locking == nullptr ? "unset" : locking);
}

}  // namespace finch::hdf5
