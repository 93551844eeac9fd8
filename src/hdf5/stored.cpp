// The checks before reading: where a dataset's elements are stored, and whether the file is large enough for them.
#include "stored.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace finch::hdf5 {
namespace {

constexpr std::uint64_t largest_packing = 1100;  // deflate compresses at most 1032 bytes into one
constexpr std::uint64_t smallest_chunk_limit = std::uint64_t{1} << 20;

herr_t follow_nowhere(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) {
    return -1;
}

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
    throw FileError(fmt::format("{} {}", name, why));
}

std::vector<hsize_t> chunk_of(hid_t creation, std::size_t dimensions) {
    std::vector<hsize_t> chunk(dimensions);
    check_reading(H5Pget_chunk(creation, static_cast<int>(dimensions), chunk.data()), "H5Pget_chunk");
    return chunk;
}

/// True if every element was written. H5Dget_space_status compares bytes, which is meaningless for compressed chunks.
bool is_whole(hid_t dataset, hid_t creation, const std::vector<std::int64_t>& shape) {
    if (H5Pget_layout(creation) != H5D_CHUNKED) {
        H5D_space_status_t status{};
        check_reading(H5Dget_space_status(dataset, &status), "H5Dget_space_status");
        return status == H5D_SPACE_STATUS_ALLOCATED;
    }
    const auto chunk = chunk_of(creation, shape.size());
    std::vector<std::int64_t> chunks;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const auto size = static_cast<hsize_t>(shape[i]);
        chunks.push_back(static_cast<std::int64_t>(size / chunk[i] + (size % chunk[i] != 0 ? 1 : 0)));
    }
    hsize_t written = 0;
    const Hid space(check_reading(H5Dget_space(dataset), "H5Dget_space"));
    check_reading(H5Dget_num_chunks(dataset, space.get(), &written), "H5Dget_num_chunks");
    return written == product(chunks, "the number of chunks");
}

/// True if the dataset has filters, such as compression. Throws FileError if a filter is not available.
bool check_filters(hid_t creation, const std::string& name) {
    const int filters = H5Pget_nfilters(creation);
    for (int i = 0; i < filters; ++i) {
        unsigned flags = 0;
        std::size_t values = 0;
        std::array<char, 64> filter{};
        const H5Z_filter_t id = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr,
                                               filter.size() - 1, filter.data(), nullptr);
        if (H5Zfilter_avail(id) <= 0) {
            refuse(name,
                   fmt::format("is packed by the filter {} ({}), which this HDF5 does not have", id, filter.data()));
        }
    }
    return filters > 0;
}

void check_size(hid_t dataset, hid_t creation, const std::vector<std::int64_t>& shape, bool packed,
                const std::string& name) {
    const Hid type(check_reading(H5Dget_type(dataset), "H5Dget_type"));
    std::uint64_t most = file_bytes(dataset);
    if (packed && most < std::numeric_limits<std::uint64_t>::max() / largest_packing) {
        most *= largest_packing;
    }
    const auto too_large = [&](const std::vector<std::int64_t>& sizes, std::uint64_t limit) {
        return product(sizes, name) > limit / std::max<std::size_t>(1, H5Tget_size(type.get()));
    };
    if (too_large(shape, most)) {
        refuse(name, fmt::format("claims the shape ({}), more than a file of {} bytes can hold", fmt::join(shape, ", "),
                                 file_bytes(dataset)));
    }
    if (H5Pget_layout(creation) == H5D_CHUNKED) {
        const auto chunk = chunk_of(creation, shape.size());
        if (too_large({chunk.begin(), chunk.end()}, std::max(most, smallest_chunk_limit))) {
            refuse(name, fmt::format("has chunks of ({}), more than a file of {} bytes can hold",
                                     fmt::join(chunk, ", "), file_bytes(dataset)));
        }
    }
}

}  // namespace

Hid within_this_file() {
    Hid access(check(H5Pcreate(H5P_LINK_ACCESS), "H5Pcreate"));
    check(H5Pset_elink_cb(access.get(), follow_nowhere, nullptr), "H5Pset_elink_cb");
    return access;
}

bool has_object(hid_t at, const std::string& name) {
    for (std::size_t end = 0; end != std::string::npos;) {  // H5Lexists fails if a group of the path does not exist
        end = name.find('/', end + 1);
        const std::string part = name.substr(0, end);
        if (check_reading(H5Lexists(at, part.c_str(), within_this_file().get()), part + " cannot be read") == 0) {
            return false;
        }
    }
    return true;
}

Hid open_object(hid_t at, const std::string& name) {
    if (!has_object(at, name)) {
        throw FileError(fmt::format("there is no {} in this file", name));
    }
    return Hid(check_reading(H5Oopen(at, name.c_str(), within_this_file().get()), name + " cannot be opened"));
}

Hid open_dataset(hid_t at, const std::string& name) {
    Hid dataset = open_object(at, name);
    if (H5Iget_type(dataset.get()) != H5I_DATASET) {
        refuse(name, "is no dataset");
    }
    const Hid creation(check_reading(H5Dget_create_plist(dataset.get()), "H5Dget_create_plist"));
    if (H5Pget_layout(creation.get()) == H5D_VIRTUAL) {
        refuse(name, "is a virtual dataset: its elements are elsewhere; copy them into this file");
    }
    if (H5Pget_external_count(creation.get()) != 0) {
        refuse(name, "is stored outside of this file; copy it into the file");
    }
    const bool packed = check_filters(creation.get(), name);
    const auto shape = shape_of(dataset.get());
    if (product(shape, name) > 0) {
        check_size(dataset.get(), creation.get(), shape, packed, name);
        if (!is_whole(dataset.get(), creation.get(), shape)) {
            refuse(name, "was never written, or not all of it");
        }
    }
    return dataset;
}

Hid open_table(hid_t at, const std::string& name) {
    Hid dataset = open_dataset(at, name);
    const Hid creation(check_reading(H5Dget_create_plist(dataset.get()), "H5Dget_create_plist"));
    if (H5Pget_layout(creation.get()) == H5D_CHUNKED) {
        refuse(name, "is stored in chunks, as no table of Finch is");
    }
    return dataset;
}

std::uint64_t file_bytes(hid_t object) {
    const Hid file(check_reading(H5Iget_file_id(object), "H5Iget_file_id"));
    hsize_t bytes = 0;
    check_reading(H5Fget_filesize(file.get(), &bytes), "H5Fget_filesize");
    return bytes;
}

std::uint64_t product(const std::vector<std::int64_t>& sizes, const std::string& name) {
    std::int64_t total = 1;
    for (const std::int64_t size : sizes) {
        if (size < 0 || __builtin_mul_overflow(total, size, &total)) {
            refuse(name, fmt::format("claims the impossible shape ({})", fmt::join(sizes, ", ")));
        }
    }
    return static_cast<std::uint64_t>(total);
}

std::vector<std::int64_t> shape_of(hid_t dataset) {
    const Hid space(check_reading(H5Dget_space(dataset), "H5Dget_space"));
    if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) {
        throw FileError("a dataset without a shape");
    }
    std::vector<hsize_t> sizes(
        static_cast<std::size_t>(check_reading(H5Sget_simple_extent_ndims(space.get()), "H5Sget_simple_extent_ndims")));
    check_reading(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr), "H5Sget_simple_extent_dims");
    return {sizes.begin(), sizes.end()};
}

}  // namespace finch::hdf5
