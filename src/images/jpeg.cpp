#include "finch/base/format.hpp"

#include "codecs.hpp"

#include <cstdio>  // jpeglib.h needs it
#include <jpeglib.h>
// jpeglib.h must come first
#include <jerror.h>

namespace finch::images {
namespace {

/// The error handler of a decoding. libjpeg's functions receive its first member.
struct JpegErrors {
    jpeg_error_mgr handler{};
    std::jmp_buf place{};  ///< to return to after an error
};

struct JpegReader {
    jpeg_decompress_struct jpeg{};

    JpegReader() = default;
    JpegReader(const JpegReader&) = delete;
    JpegReader& operator=(const JpegReader&) = delete;
    ~JpegReader() { jpeg_destroy_decompress(&jpeg); }
};

extern "C" [[noreturn]] void finch_jpeg_error(j_common_ptr jpeg) {
    std::longjmp(reinterpret_cast<JpegErrors*>(jpeg->err)->place, 1);
}

/// Ignores warnings, as Pillow does, except for a file that is cut off.
extern "C" void finch_jpeg_message(j_common_ptr jpeg, int level) {
    if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF) {
        finch_jpeg_error(jpeg);
    }
}

/// Calls `step`. Throws ImageError with libjpeg's text if it fails.
template <class Step>
void jpeg_step(JpegReader& reader, JpegErrors& errors, const Step& step) {
    if (!completes(errors.place, step)) {
        std::array<char, JMSG_LENGTH_MAX> text{};
        (*errors.handler.format_message)(reinterpret_cast<j_common_ptr>(&reader.jpeg), text.data());
        throw ImageError(errors.handler.msg_code == JWRN_JPEG_EOF
                             ? "cannot be read as JPEG (the file is cut off)"
                             : fmt::format("cannot be read as JPEG ({})", text.data()));
    }
}

Orientation orientation_of_jpeg(const jpeg_decompress_struct& jpeg) {
    std::string_view exif;
    std::string_view xmp;
    for (const jpeg_marker_struct* marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
        const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
        exif = exif.empty() && data.starts_with({"Exif", 5}) ? data : exif;
        xmp = data.starts_with("http://ns.adobe.com/xap/1.0/") ? data : xmp;
    }
    return orientation_of(exif, xmp);
}

/// Converts inverted CMYK, as Adobe writes it, to RGB.
void drop_black(Image& image) {
    std::vector<std::uint8_t> colours;
    colours.reserve(image.pixels.size() / 4 * 3);
    for (std::size_t at = 0; at < image.pixels.size(); at += 4) {
        const int light = image.pixels[at + 3];
        for (std::size_t channel = 0; channel < 3; ++channel) {
            const int ink = 255 - image.pixels[at + channel];
            colours.push_back(static_cast<std::uint8_t>(light - (ink * light + 127) / 255));
        }
    }
    image.pixels = std::move(colours);
    image.channels = 3;
}

}  // namespace

Image decode_jpeg(Bytes file) {
    JpegErrors errors;
    JpegReader reader;
    jpeg_decompress_struct& jpeg = reader.jpeg;
    Image image;
    jpeg.err = jpeg_std_error(&errors.handler);
    errors.handler.error_exit = finch_jpeg_error;
    errors.handler.emit_message = finch_jpeg_message;
    jpeg_step(reader, errors, [&] {
        jpeg_create_decompress(&jpeg);
        jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
        jpeg_save_markers(&jpeg, JPEG_APP0 + 1, 0xFFFF);
        jpeg_read_header(&jpeg, TRUE);
    });
    if (jpeg.num_components != 1 && jpeg.num_components != 3 && jpeg.num_components != 4) {
        throw ImageError(fmt::format("has {} channels; save it as RGB or in grey", jpeg.num_components));
    }
    image.height = jpeg.image_height;
    image.width = jpeg.image_width;
    image.channels = jpeg.num_components;
    check_size(image.height, image.width);
    const Orientation orientation = orientation_of_jpeg(jpeg);  // while there are markers
    image.pixels.resize(static_cast<std::size_t>(image.height * image.width * image.channels));
    jpeg_step(reader, errors, [&] {
        jpeg.out_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
        jpeg_start_decompress(&jpeg);
        while (jpeg.output_scanline < jpeg.output_height) {
            JSAMPROW row = image.pixels.data() + jpeg.output_scanline * image.width * image.channels;
            jpeg_read_scanlines(&jpeg, &row, 1);
        }
        jpeg_finish_decompress(&jpeg);
    });
    if (image.channels == 4) {
        drop_black(image);
    }
    return turn(std::move(image), orientation);
}

}  // namespace finch::images
