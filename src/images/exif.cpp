#include "codecs.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace finch::images {
namespace {

constexpr std::size_t header_bytes = 8;
constexpr std::size_t entry_bytes = 12;
constexpr unsigned orientation_tag = 0x0112;
constexpr unsigned type_short = 3;
constexpr unsigned type_long = 4;

/// Reads unsigned numbers of a TIFF structure.
class TiffNumbers {
public:
    explicit TiffNumbers(Bytes bytes) : bytes_(bytes), is_little_(bytes.front() == std::byte{'I'}) {}

    [[nodiscard]] bool holds(std::size_t at, std::size_t count) const {
        return at <= bytes_.size() && count <= bytes_.size() - at;
    }
    [[nodiscard]] unsigned number(std::size_t at, std::size_t count) const {
        unsigned value = 0;
        for (std::size_t i = 0; i < count; ++i) {
            value = value << 8 | std::to_integer<unsigned>(bytes_[at + (is_little_ ? count - 1 - i : i)]);
        }
        return value;
    }

private:
    Bytes bytes_;
    bool is_little_;
};

}  // namespace

std::optional<Bytes> after_exif_prefix(Bytes data) {
    constexpr std::array prefix{std::byte{'E'}, std::byte{'x'}, std::byte{'i'}, std::byte{'f'}, std::byte{0}};
    constexpr std::size_t size = 6;  // the last byte is 0 or 255
    return data.size() > size && std::equal(prefix.begin(), prefix.end(), data.begin())
               ? std::optional(data.subspan(size))
               : std::nullopt;
}

int exif_orientation(Bytes exif) {
    const auto begins = [exif](const char* text) {
        return exif.size() >= header_bytes && exif[0] == std::byte(text[0]) && exif[1] == std::byte(text[1]);
    };
    if (!(begins("II") || begins("MM")) || TiffNumbers(exif).number(2, 2) != 42) {
        throw ImageError("has broken EXIF data; save it again, or remove them");
    }
    const TiffNumbers numbers(exif);
    const std::size_t directory = numbers.number(4, 4);
    const std::size_t entries = numbers.holds(directory, 2) ? numbers.number(directory, 2) : 0;
    for (std::size_t i = 0; i < entries; ++i) {
        const std::size_t at = directory + 2 + i * entry_bytes;
        if (!numbers.holds(at, entry_bytes)) {
            break;
        }
        if (numbers.number(at, 2) == orientation_tag && numbers.number(at + 4, 4) == 1) {
            const unsigned type = numbers.number(at + 2, 2);
            const unsigned value = type == type_short  ? numbers.number(at + 8, 2)
                                   : type == type_long ? numbers.number(at + 8, 4)
                                                       : 1;
            return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
        }
    }
    return 1;
}

Image turn(Image image, int orientation) {
    if (orientation == 1) {
        return image;
    }
    const bool swaps = orientation >= 5;
    const bool flips_rows = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const bool flips_columns = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    Image upright{.height = swaps ? image.width : image.height,
                  .width = swaps ? image.height : image.width,
                  .channels = image.channels,
                  .pixels = {},
                  .is_turned = true};
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
