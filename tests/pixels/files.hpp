#pragma once

#include "finch/pixels/loader.hpp"

#include "support/temporary_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace finch::test {

using Bytes = std::vector<std::uint8_t>;

inline void write_bytes(const std::filesystem::path& path, const Bytes& bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// Returns the value at index `place` of image `image`.
inline std::uint8_t value_at(std::int64_t image, std::int64_t place) {
    return static_cast<std::uint8_t>((image * 31 + place * 7 + image / 8) % 251);
}

inline Bytes image_of(std::int64_t image, std::int64_t values) {
    Bytes bytes;
    for (std::int64_t place = 0; place < values; ++place) {
        bytes.push_back(value_at(image, place));
    }
    return bytes;
}

/// Writes a file: a header of `offset` bytes, then `images` images of `values` bytes. `first` is the number of the
/// first image.
inline pixels::Piece write_images(const std::filesystem::path& path, std::int64_t offset, std::int64_t images,
                                  std::int64_t values, std::int64_t first = 0) {
    Bytes bytes(static_cast<std::size_t>(offset), 255);
    for (std::int64_t image = first; image < first + images; ++image) {
        const Bytes one = image_of(image, values);
        bytes.insert(bytes.end(), one.begin(), one.end());
    }
    write_bytes(path, bytes);
    return {.path = path.string(), .place = {.offset = offset, .stride = values, .images = images}};
}

}  // namespace finch::test
