#pragma once

#include "finch/images/image.hpp"

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace finch::images {

using Bytes = std::span<const std::byte>;

[[nodiscard]] Image decode_png(Bytes file);
[[nodiscard]] Image decode_jpeg(Bytes file);

/// How an image must be turned: 1 to 8, as defined by TIFF 6.0 and EXIF. `remark` becomes Image::remark.
struct Orientation {
    unsigned value = 1;
    std::string_view remark{};
};
/// Returns the orientation in EXIF data (a TIFF header, also behind the prefix "Exif", 0, 0), or if they have none, the
/// property tiff:Orientation of XMP. Both may be empty.
[[nodiscard]] Orientation orientation_of(std::string_view exif, std::string_view xmp);
/// Returns `image` upright.
[[nodiscard]] Image turn(Image image, const Orientation& orientation);

/// Throws ImageError if an image of this size is larger than any photo: its header is probably broken.
void check_size(std::int64_t height, std::int64_t width);
/// Throws ImageError: the image has more than 8 bits per channel.
[[noreturn]] void refuse_depth(int bits);

/// Calls `step`, in which a C library may jump back to `place`. Returns false after a jump. A jump skips destructors,
/// so `step` and what it calls must not create objects that have one.
template <class Step>
[[nodiscard]] bool completes(std::jmp_buf& place, const Step& step) {
    if (setjmp(place) != 0) {
        return false;
    }
    step();
    return true;
}

}  // namespace finch::images
