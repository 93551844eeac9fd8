#pragma once

#include "finch/images/image.hpp"

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace finch::images {

using Bytes = std::span<const std::byte>;

[[nodiscard]] Image decode_png(Bytes file);
[[nodiscard]] Image decode_jpeg(Bytes file);

/// Returns the orientation in EXIF data, which begin with a TIFF header: 1 to 8, or 1 if there is none. Throws
/// ImageError if the header is broken.
[[nodiscard]] int exif_orientation(Bytes exif);
/// Returns `data` without the prefix "Exif", 0, 0; nothing if it has no such prefix.
[[nodiscard]] std::optional<Bytes> after_exif_prefix(Bytes data);

/// Returns `image` upright. `orientation`: 1 to 8, as defined by TIFF 6.0 and EXIF.
[[nodiscard]] Image turn(Image image, int orientation);

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
