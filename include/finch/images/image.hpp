#pragma once

#include "finch/base/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// PNG and JPEG files as pixels. The results equal those of tools/images_to_hdf5.py, which uses Pillow.
namespace finch::images {

/// A file cannot be used as an image. The message says what is wrong and what is right, without the file's name.
class ImageError : public Error {
public:
    using Error::Error;
};

struct Image {
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t channels = 0;         ///< 1: grey; 2: grey and opacity; 3: RGB; 4: RGB and opacity
    std::vector<std::uint8_t> pixels;  ///< (height, width, channels)
    std::string_view remark{};         ///< on its metadata, such as "turned as EXIF says"; usually empty
};

struct Size {
    std::int64_t height = 0;
    std::int64_t width = 0;
    bool operator==(const Size&) const = default;
};

/// How images are converted.
struct Options {
    std::optional<Size> size{};                               ///< nothing: the size of the file
    bool grey = false;                                        ///< one channel; otherwise RGB
    std::optional<std::array<std::uint8_t, 3>> background{};  ///< RGB behind transparent pixels; nothing: refused
};

/// Returns the format that a file begins with: "PNG", "JPEG", "TIFF", "GIF", "WebP", "BMP"; empty if it is another one.
[[nodiscard]] std::string_view format_of(std::span<const std::byte> file) noexcept;

/// Returns the upright image in a PNG or JPEG file. Throws ImageError, also for more than 8 bits per channel and for
/// animations.
[[nodiscard]] Image decode(std::span<const std::byte> file);

/// Returns the upright image in a PNG or JPEG file with 1 channel (Options::grey) or 3, in the size of `options`.
/// Throws ImageError, also for transparent pixels without Options::background.
[[nodiscard]] Image read(std::span<const std::byte> file, const Options& options);

/// Resizes with Keys' cubic kernel (a = -0.5), stretched by the factor of the reduction: Pillow's BICUBIC. The width
/// comes first, then the height. The weights are fixed-point numbers of 22 bits, and the pixels between both passes are
/// bytes, so all pixels equal those of Pillow up to version 12. Later versions choose the order of the passes.
[[nodiscard]] Image resize(const Image& image, const Size& size);

}  // namespace finch::images
