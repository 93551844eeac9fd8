#include "finch/base/bytes.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/words.hpp"
#include "finch/data/excerpt.hpp"

#include "readers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

namespace finch::data {
namespace {

constexpr std::size_t most_named = 3;

/// Throws ConfigError if a streamed float pixel is not finite. (The readers check pixels in memory.) `first` is the
/// number of the first image in `pixels`.
void check_finite(const Dataset& set, std::int64_t first, std::span<const std::uint8_t> pixels) {
    const auto size = static_cast<std::size_t>(set.bytes_per_image());
    for (std::size_t at = 0; at < pixels.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, pixels.data() + at, sizeof value);
        if (!std::isfinite(value)) {
            refuse(set.store->file_of(first + static_cast<std::int64_t>(at / size)),
                   fmt::format("an image holds {}; expected numbers that a float of 32 bits can hold", value));
        }
    }
}

/// Warns of test images with the pixels of a training image. `hashes` are those of all images, training images first.
void warn_of_repeated(const Sets& sets, std::vector<std::size_t> hashes) {
    const auto test = hashes.begin() + sets.training.samples();
    std::sort(hashes.begin(), test);
    std::vector<std::string> names;
    for (auto one = test; one != hashes.end(); ++one) {
        if (std::binary_search(hashes.begin(), test, *one)) {
            names.push_back(std::to_string(one - test));
        }
    }
    if (!names.empty()) {
        spdlog::warn(
            "{} of {} test images are training or validation images, too, so test results are too good (indices in the "
            "test set: {}{})",
            names.size(), sets.test.samples(), join(std::span(names).first(std::min(most_named, names.size()))),
            names.size() > most_named ? ", …" : "");
    }
}

}  // namespace

std::string fingerprint(const Sets& sets) {
    std::uint32_t crc = 0;
    std::vector<std::size_t> hashes;  // of the pixels of each image
    const bool compares = sets.training.samples() > 0 && sets.test.samples() > 0;
    std::int64_t read = 0;
    const double total = static_cast<double>(pixel_bytes(sets.training) + pixel_bytes(sets.test)) / 1e9;
    double last_line = steady_seconds();
    for (const Dataset* set : {&sets.training, &sets.test}) {
        const std::array<std::int64_t, 4> shape{set->samples(), set->height, set->width, set->channels};
        crc = crc32c(std::as_bytes(std::span(shape)), crc);
        std::int64_t visited = 0;
        visit_pixels(*set, [&](std::span<const std::uint8_t> pixels) {
            if (set->store && set->float_pixels) {
                check_finite(*set, visited, pixels);
                visited += static_cast<std::int64_t>(pixels.size()) / set->bytes_per_image();
            }
            crc = crc32c(std::as_bytes(pixels), crc);
            const auto bytes = static_cast<std::size_t>(set->bytes_per_image());
            for (std::size_t at = 0; compares && at < pixels.size(); at += bytes) {
                const auto* const image = reinterpret_cast<const char*>(pixels.data() + at);
                hashes.push_back(std::hash<std::string_view>()({image, bytes}));
            }
            read += std::ssize(pixels);
            if (set->store && steady_seconds() > last_line + seconds_between_lines) {
                last_line = steady_seconds();
                spdlog::info("reading the data once, for their checksum: {:.1f} of {:.1f} GB",
                             static_cast<double>(read) / 1e9, total);
            }
        });
        crc = crc32c(std::as_bytes(std::span(set->labels)), crc);
        crc = crc32c(std::as_bytes(std::span(set->targets)), crc);
        crc = crc32c(std::as_bytes(std::span(set->validation)), crc);
        crc = crc32c(std::as_bytes(std::span(set->system_ends)), crc);
    }
    if (compares) {
        warn_of_repeated(sets, std::move(hashes));
    }
    return fmt::format("{:08x}", crc);
}

}  // namespace finch::data
