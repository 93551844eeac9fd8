#include "finch/base/format.hpp"

#include "codecs.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace finch::images {
namespace {

constexpr std::int64_t most_pixels = 178956970;  // Pillow's limit

/// Returns `image` without its last channel, the opacity.
Image without_opacity(Image image, const Options& options) {
    const auto channels = static_cast<std::size_t>(image.channels);
    std::vector<std::uint8_t> colours;
    colours.reserve(image.pixels.size() / channels * 3);
    for (std::size_t at = 0; at < image.pixels.size(); at += channels) {
        const int opacity = image.pixels[at + channels - 1];
        if (opacity < 255 && !options.background) {
            throw ImageError(
                "has transparent pixels; write data.background: [red, green, blue], the colour behind them");
        }
        for (std::size_t channel = 0; channel < 3; ++channel) {
            const int colour = image.pixels[at + (channels == 4 ? channel : 0)];
            const int behind = opacity < 255 ? (*options.background)[channel] : 0;
            colours.push_back(static_cast<std::uint8_t>((colour * opacity + behind * (255 - opacity) + 127) / 255));
        }
    }
    image.pixels = std::move(colours);
    image.channels = 3;
    return image;
}

/// Converts RGB to grey: the luma of ITU-R 601-2, with weights of 16 bits.
Image to_grey(Image image) {
    for (std::size_t at = 0; at < image.pixels.size(); at += 3) {
        const auto* const pixel = image.pixels.data() + at;
        image.pixels[at / 3] =
            static_cast<std::uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
    }
    image.pixels.resize(image.pixels.size() / 3);
    image.channels = 1;
    return image;
}

Image to_colours(const Image& image) {
    Image made{.height = image.height, .width = image.width, .channels = 3, .pixels = {}, .remark = image.remark};
    made.pixels.reserve(image.pixels.size() * 3);
    for (const std::uint8_t pixel : image.pixels) {
        made.pixels.insert(made.pixels.end(), 3, pixel);
    }
    return made;
}

}  // namespace

void check_size(std::int64_t height, std::int64_t width) {
    if (height < 1 || width < 1 || width > most_pixels / height) {
        throw ImageError(
            fmt::format("says that it has {} x {} pixels; expected at most {} in all", height, width, most_pixels));
    }
}

void refuse_depth(int bits) {
    throw ImageError(
        fmt::format("has {} bits in each channel, of which 8 would be cut off; save it with 8, or write "
                    "HDF5 with tools/images_to_hdf5.py --floats",
                    bits));
}

std::string_view format_of(Bytes file) noexcept {
    struct Signature {
        std::string_view bytes;
        std::string_view format;
    };
    static constexpr std::array signatures{
        Signature{"\x89PNG\r\n\x1a\n", "PNG"}, Signature{"\xff\xd8\xff", "JPEG"}, Signature{{"II*\0", 4}, "TIFF"},
        Signature{{"MM\0*", 4}, "TIFF"},       Signature{"GIF8", "GIF"},          Signature{"BM", "BMP"}};
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    if (text.starts_with("RIFF") && text.substr(std::min<std::size_t>(8, text.size())).starts_with("WEBP")) {
        return "WebP";
    }
    for (const Signature& signature : signatures) {
        if (text.starts_with(signature.bytes)) {
            return signature.format;
        }
    }
    return "";
}

Image decode(Bytes file) {
    const std::string_view format = format_of(file);
    if (format == "PNG") {
        return decode_png(file);
    }
    if (format == "JPEG") {
        return decode_jpeg(file);
    }
    throw ImageError(fmt::format("is {}; expected PNG or JPEG (tools/images_to_hdf5.py converts more formats to HDF5)",
                                 format.empty() ? "neither PNG nor JPEG" : std::string(format)));
}

Image read(Bytes file, const Options& options) {
    Image image = decode(file);
    if (image.channels == 2 || image.channels == 4) {
        image = without_opacity(std::move(image), options);
    }
    if (options.grey && image.channels == 3) {
        image = to_grey(std::move(image));
    } else if (!options.grey && image.channels == 1) {
        image = to_colours(image);
    }
    return options.size ? resize(image, *options.size) : std::move(image);
}

}  // namespace finch::images
