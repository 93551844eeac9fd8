#include "finch/base/format.hpp"

#include "codecs.hpp"

#include <algorithm>
#include <cstring>
#include <png.h>
#include <string_view>

namespace finch::images {
namespace {

/// The state of a decoding that libpng's functions receive.
struct PngSource {
    Bytes rest;                     ///< of the file
    std::jmp_buf place{};           ///< to return to after an error
    std::array<char, 200> error{};  ///< the text of libpng's error
};

struct PngReader {
    png_structp png = nullptr;
    png_infop info = nullptr;

    PngReader() = default;
    PngReader(const PngReader&) = delete;
    PngReader& operator=(const PngReader&) = delete;
    ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

extern "C" [[noreturn]] void finch_png_error(png_structp png, png_const_charp text) {
    auto& source = *static_cast<PngSource*>(png_get_error_ptr(png));
    std::strncpy(source.error.data(), text, source.error.size() - 1);
    std::longjmp(source.place, 1);
}

extern "C" void finch_png_warning(png_structp /*png*/, png_const_charp /*text*/) {}

extern "C" void finch_png_read(png_structp png, png_bytep to, std::size_t count) {
    auto& source = *static_cast<PngSource*>(png_get_io_ptr(png));
    if (count > source.rest.size()) {
        png_error(png, "the file is cut off");
    }
    std::memcpy(to, source.rest.data(), count);
    source.rest = source.rest.subspan(count);
}

/// Calls `step`. Throws ImageError with libpng's text if it fails.
template <class Step>
void png_step(PngSource& source, const Step& step) {
    if (!completes(source.place, step)) {
        throw ImageError(fmt::format("cannot be read as PNG ({})", source.error.data()));
    }
}

/// Throws ImageError if the file has frames of an animation (chunk acTL).
void refuse_animation(const PngReader& reader) {
    png_unknown_chunkp chunks = nullptr;
    const int count = png_get_unknown_chunks(reader.png, reader.info, &chunks);
    for (const png_unknown_chunk& chunk : std::span(chunks, static_cast<std::size_t>(count))) {
        const bool counts = std::memcmp(chunk.name, "acTL", 4) == 0 && chunk.size >= 4;
        if (const png_uint_32 frames = counts ? png_get_uint_32(chunk.data) : 1; frames > 1) {
            throw ImageError(fmt::format("holds {} frames; save each as a file of its own", frames));
        }
    }
}

/// Returns the EXIF data that ImageMagick writes as a text: three lines, then hexadecimal digits.
std::string exif_in_text(std::string_view text) {
    for (int line = 0; line < 3; ++line) {
        text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    }
    std::string bytes;
    unsigned digits = 1;  // a 1 before the digits that were read
    for (const char c : text) {
        const std::size_t digit = std::string_view("0123456789abcdef").find(c);
        digits = digit < 16 ? digits << 4 | static_cast<unsigned>(digit) : digits;
        if (digits >= 0x100) {
            bytes.push_back(static_cast<char>(digits & 0xFF));
            digits = 1;
        }
    }
    return bytes;
}

Orientation orientation_of_png(const PngReader& reader) {
    png_uint_32 size = 0;
    png_bytep chunk = nullptr;
    std::string exif;
    if (png_get_eXIf_1(reader.png, reader.info, &size, &chunk) != 0) {
        exif.assign(reinterpret_cast<const char*>(chunk), size);
    }
    std::string_view xmp;
    png_textp texts = nullptr;
    int count = 0;
    png_get_text(reader.png, reader.info, &texts, &count);
    for (const png_text& text : std::span(texts, static_cast<std::size_t>(count))) {
        const std::string_view key(text.key);
        const std::string_view value = text.text != nullptr ? text.text : "";
        exif = exif.empty() && key == "Raw profile type exif" && !value.empty() ? exif_in_text(value) : exif;
        xmp = key == "XML:com.adobe.xmp" ? value : xmp;
    }
    return orientation_of(exif, xmp);
}

/// Reads all up to the pixels, and converts indexed and low-bit pixels to 8 bits per channel.
void read_header(const PngReader& reader, Image& image) {
    png_read_info(reader.png, reader.info);
    image.height = png_get_image_height(reader.png, reader.info);
    image.width = png_get_image_width(reader.png, reader.info);
    png_set_expand(reader.png);  // indices to colours, grey to 8 bits, a transparent colour to opacity
    png_set_interlace_handling(reader.png);
    png_read_update_info(reader.png, reader.info);
    image.channels = png_get_channels(reader.png, reader.info);
}

void set_limits(const PngReader& reader, PngSource& source) {
    png_set_read_fn(reader.png, &source, finch_png_read);
    png_set_crc_action(reader.png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_user_limits(reader.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_size() decides
    png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_ALWAYS, reinterpret_cast<png_const_bytep>("acTL"), 1);
}

}  // namespace

Image decode_png(Bytes file) {
    PngSource source{.rest = file};
    PngReader reader;
    Image image;
    reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, finch_png_error, finch_png_warning);
    reader.info = reader.png != nullptr ? png_create_info_struct(reader.png) : nullptr;
    if (reader.info == nullptr) {
        throw ImageError("libpng does not start");
    }
    png_step(source, [&] {
        set_limits(reader, source);
        read_header(reader, image);
    });
    refuse_animation(reader);
    if (const int bits = png_get_bit_depth(reader.png, reader.info); bits > 8) {
        refuse_depth(bits);
    }
    check_size(image.height, image.width);
    const auto row_bytes = static_cast<std::size_t>(image.width * image.channels);
    image.pixels.resize(static_cast<std::size_t>(image.height) * row_bytes);
    std::vector<png_bytep> rows;
    for (std::size_t row = 0; row < static_cast<std::size_t>(image.height); ++row) {
        rows.push_back(image.pixels.data() + row * row_bytes);
    }
    png_step(source, [&] {
        png_read_image(reader.png, rows.data());
        png_read_end(reader.png, reader.info);
    });
    return turn(std::move(image), orientation_of_png(reader));
}

}  // namespace finch::images
