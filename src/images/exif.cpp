#include "codecs.hpp"

#include <algorithm>
#include <optional>
#include <regex>
#include <stdexcept>
#include <utility>

namespace finch::images {
namespace {

/// Returns the orientation in EXIF data that begin with a TIFF header; 0 if they have none. Returns nothing if the data
/// are damaged.
std::optional<unsigned> exif_orientation(std::string_view exif) try {
    enum : unsigned { type_short = 3, type_long = 4, entry_bytes = 12, orientation_tag = 0x0112 };
    const bool is_little = exif.starts_with("II");
    const auto number = [&](std::size_t at, std::size_t count) {
        unsigned value = 0;
        for (std::size_t i = 0; i < count; ++i) {
            value = value << 8 | static_cast<std::uint8_t>(exif.at(at + (is_little ? count - 1 - i : i)));
        }
        return value;
    };
    if (!(is_little || exif.starts_with("MM")) || number(2, 2) != 42) {
        return std::nullopt;
    }
    std::size_t at = number(4, 4);
    unsigned entries = number(at, 2);
    for (at += 2; entries > 0; --entries, at += entry_bytes) {
        if (number(at, 2) == orientation_tag && number(at + 4, 4) == 1) {
            const unsigned type = number(at + 2, 2);
            const unsigned value = type == type_short ? number(at + 8, 2) : type == type_long ? number(at + 8, 4) : 1;
            return value >= 1 && value <= 8 ? value : 1;
        }
    }
    return 0;
} catch (const std::out_of_range&) {
    return std::nullopt;
}

}  // namespace

Orientation orientation_of(std::string_view exif, std::string_view xmp) {
    constexpr std::string_view prefix("Exif", 5);  // the byte behind it is 0 or 255
    while (exif.starts_with(prefix)) {
        exif.remove_prefix(std::min(exif.size(), prefix.size() + 1));
    }
    const std::optional<unsigned> found = exif.empty() ? 0 : exif_orientation(exif);
    if (!found) {
        return {1, "damaged EXIF data, not turned"};
    }
    if (*found > 0) {
        return {*found, *found > 1 ? "turned as EXIF says" : ""};
    }
    static const std::regex property("tiff:Orientation(?:=\"|>)([1-8])");
    std::match_results<std::string_view::const_iterator> match;
    if (std::regex_search(xmp.begin(), xmp.end(), match, property) && *match[1].first > '1') {
        return {static_cast<unsigned>(*match[1].first - '0'), "turned as XMP says"};
    }
    return {};
}

Image turn(Image image, const Orientation& orientation) {
    image.remark = orientation.remark;
    const unsigned value = orientation.value;
    if (value == 1) {
        return image;
    }
    const bool swaps = value >= 5;
    const bool flips_rows = value == 3 || value == 4 || value == 6 || value == 7;
    const bool flips_columns = value == 2 || value == 3 || value == 7 || value == 8;
    Image upright{.height = swaps ? image.width : image.height,
                  .width = swaps ? image.height : image.width,
                  .channels = image.channels,
                  .pixels = {},
                  .remark = image.remark};
    upright.pixels.reserve(image.pixels.size());
    for (std::int64_t y = 0; y < upright.height; ++y) {
        for (std::int64_t x = 0; x < upright.width; ++x) {
            const std::int64_t row = swaps ? x : y;
            const std::int64_t column = swaps ? y : x;
            const auto* const pixel = image.pixels.data() + ((flips_rows ? image.height - 1 - row : row) * image.width +
                                                             (flips_columns ? image.width - 1 - column : column)) *
                                                                image.channels;
            upright.pixels.insert(upright.pixels.end(), pixel, pixel + image.channels);
        }
    }
    return upright;
}

}  // namespace finch::images
