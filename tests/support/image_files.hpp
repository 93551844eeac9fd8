#pragma once

#include "finch/images/image.hpp"

#include <cstdint>
#include <cstdio>  // jpeglib.h needs it
#include <cstdlib>
#include <jpeglib.h>
#include <png.h>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// PNG and JPEG files for tests.
namespace finch::testing {

using FileBytes = std::vector<std::byte>;

/// Returns an image whose bytes i have the value (7i² + 31i) mod 256.
inline images::Image patterned(std::int64_t height, std::int64_t width, std::int64_t channels) {
    images::Image image{.height = height, .width = width, .channels = channels, .pixels = {}};
    for (std::int64_t i = 0; i < height * width * channels; ++i) {
        image.pixels.push_back(static_cast<std::uint8_t>((i * i * 7 + i * 31) % 256));
    }
    return image;
}

/// Returns a PNG file of `image`, or of one with 16 bits per channel.
inline FileBytes png_of(const images::Image& image, bool has_16_bits = false) {
    png_image header{};
    header.version = PNG_IMAGE_VERSION;
    header.width = static_cast<png_uint_32>(image.width);
    header.height = static_cast<png_uint_32>(image.height);
    header.format = (image.channels > 2 ? PNG_FORMAT_FLAG_COLOR : 0) |
                    (image.channels % 2 == 0 ? PNG_FORMAT_FLAG_ALPHA : 0) | (has_16_bits ? PNG_FORMAT_FLAG_LINEAR : 0);
    std::vector<std::uint16_t> wide(image.pixels.begin(), image.pixels.end());
    const void* const pixels = has_16_bits ? static_cast<const void*>(wide.data()) : image.pixels.data();
    png_alloc_size_t size = 1 << 20;
    FileBytes file(size);
    if (png_image_write_to_memory(&header, file.data(), &size, 0, pixels, 0, nullptr) == 0) {
        throw std::runtime_error(header.message);
    }
    file.resize(size);
    return file;
}

/// Returns a chunk of a PNG file (PNG Specification, 5.3).
inline FileBytes png_chunk(const std::string& type, const std::string& data) {
    const auto number = [](std::uint32_t value) {
        std::string bytes;
        for (int shift = 24; shift >= 0; shift -= 8) {
            bytes += static_cast<char>(value >> shift & 0xFF);
        }
        return bytes;
    };
    std::uint32_t crc = 0xFFFFFFFF;  // CRC-32 of ISO 3309, bit by bit
    for (const char c : type + data) {
        crc ^= static_cast<std::uint8_t>(c);
        for (int bit = 0; bit < 8; ++bit) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
        }
    }
    const std::string chunk = number(static_cast<std::uint32_t>(data.size())) + type + data + number(~crc);
    const auto bytes = std::as_bytes(std::span(chunk));
    return {bytes.begin(), bytes.end()};
}

/// Inserts a chunk behind the header of a PNG file.
inline FileBytes with_chunk(FileBytes png, const std::string& type, const std::string& data) {
    constexpr std::ptrdiff_t after_header = 8 + 25;
    const FileBytes chunk = png_chunk(type, data);
    png.insert(png.begin() + after_header, chunk.begin(), chunk.end());
    return png;
}

/// Returns EXIF data (TIFF 6.0) with an orientation as a SHORT, in either byte order.
inline std::string exif_of(int orientation, bool is_little = true) {
    const auto low = static_cast<char>(orientation);
    const std::string zero(1, '\0');
    return is_little ? std::string("II*\0\x8\0\0\0\x1\0\x12\x1\x3\0\x1\0\0\0", 18) + low + std::string(7, '\0')
                     : std::string("MM\0*\0\0\0\x8\0\x1\x1\x12\0\x3\0\0\0\x1", 18) + zero + low + std::string(6, '\0');
}

/// Returns a JPEG file of the best quality. `exif`, behind its prefix, or `app1` becomes its APP1 marker.
inline FileBytes jpeg_of(const images::Image& image, J_COLOR_SPACE space, const std::string& exif = "",
                         const std::string& app1 = "") {
    jpeg_compress_struct jpeg{};
    jpeg_error_mgr errors{};
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    unsigned char* memory = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&jpeg, &memory, &size);
    jpeg.image_height = static_cast<JDIMENSION>(image.height);
    jpeg.image_width = static_cast<JDIMENSION>(image.width);
    jpeg.input_components = static_cast<int>(image.channels);
    jpeg.in_color_space = space;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    jpeg.comp_info[0].h_samp_factor = 1;  // chroma in full resolution
    jpeg.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&jpeg, TRUE);
    if (!exif.empty() || !app1.empty()) {
        const std::string marker = exif.empty() ? app1 : std::string("Exif\0\0", 6) + exif;
        jpeg_write_marker(&jpeg, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(marker.data()),
                          static_cast<unsigned>(marker.size()));
    }
    for (std::int64_t row = 0; row < image.height; ++row) {
        std::vector<std::uint8_t> pixels(image.pixels.begin() + row * image.width * image.channels,
                                         image.pixels.begin() + (row + 1) * image.width * image.channels);
        JSAMPROW begin = pixels.data();
        jpeg_write_scanlines(&jpeg, &begin, 1);
    }
    jpeg_finish_compress(&jpeg);
    const auto bytes = std::as_bytes(std::span(memory, size));
    FileBytes file(bytes.begin(), bytes.end());
    jpeg_destroy_compress(&jpeg);
    std::free(memory);
    return file;
}

}  // namespace finch::testing
