#include "finch/base/error.hpp"
#include "finch/hdf5/file.hpp"

#include "failed_close.hpp"

#include <cstdlib>
#include <exception>
#include <utility>

namespace finch::hdf5 {
namespace {

/// Returns HDF5's innermost message about the last failure, and clears HDF5's error stack.
std::string last_message() {
    std::string message;
    const auto keep_first = [](unsigned, const H5E_error2_t* error, void* text) -> herr_t {
        auto& first = *static_cast<std::string*>(text);
        if (first.empty() && error->desc != nullptr) {
            first = error->desc;
        }
        return 0;
    };
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &message);
    H5Eclear2(H5E_DEFAULT);
    return message.empty() ? "HDF5 gives no reason" : message;
}

/// The reason of the first close that failed since take_reason_of_failed_close() was called; empty if none failed. Only
/// one thread uses HDF5.
std::string reason_of_failed_close;

void keep_reason_of_failed_close() noexcept {
    try {
        const std::string reason = last_message();
        reason_of_failed_close = reason_of_failed_close.empty() ? reason : reason_of_failed_close;
    } catch (const std::exception&) {
        // Memory is exhausted: the code that writes the file then fails for the same reason.
    }
}

herr_t close(hid_t id) noexcept {
    static constexpr std::pair<H5I_type_t, herr_t (*)(hid_t)> closers[] = {
        {H5I_FILE, H5Fclose},     {H5I_GROUP, H5Gclose},     {H5I_DATASET, H5Dclose},
        {H5I_DATATYPE, H5Tclose}, {H5I_DATASPACE, H5Sclose}, {H5I_ATTR, H5Aclose}};
    const H5I_type_t type = H5Iget_type(id);
    for (const auto& [known, close_known] : closers) {
        if (type == known) {
            return close_known(id);
        }
    }
    return H5Idec_ref(id) < 0 ? -1 : 0;
}

}  // namespace

void HidTraits::destroy(type id) noexcept {
    if (close(id) < 0) {
        keep_reason_of_failed_close();
    }
}

std::string take_reason_of_failed_close() {
    return std::exchange(reason_of_failed_close, "");
}

void prepare() {
    static const bool prepared = [] {
        // If HDF5 cannot close a file on a full disk, it frees the file's memory but keeps the handle. HDF5's atexit
        // function would close this handle again.
        H5dont_atexit();
        ::setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
        return true;
    }();
    static_cast<void>(prepared);
}

hid_t check(hid_t result, const std::string& what) {
    if (result < 0) {
        throw ApiError(what + ": " + last_message());
    }
    return result;
}

hid_t check_reading(hid_t result, const std::string& what) {
    if (result < 0) {
        const std::string reason = last_message();
        const std::string version = library_version();
        const std::string remedy = "; a newer HDF5 than " + version.substr(0, version.find(',')) +
                                   " wrote it, or it is damaged: write it with libver=\"v110\" (h5py), or rewrite the "
                                   "file with that HDF5's h5repack -f GZIP=4 OLD NEW";
        throw FileError(what + ": " + reason + (reason.find("version") == std::string::npos ? "" : remedy));
    }
    return result;
}

}  // namespace finch::hdf5
