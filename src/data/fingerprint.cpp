#include "finch/base/bytes.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"

#include "readers.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <span>

namespace finch::data {
namespace {

/// Logs the progress of reading streamed pixels if the reading takes long.
class ReadingProgress {
public:
    explicit ReadingProgress(const Sets& sets) {
        for (const Dataset* set : {&sets.training, &sets.test}) {
            total_ += set->store ? set->samples() * set->bytes_per_image() : 0;
        }
    }
    void add(std::size_t bytes) {
        read_ += static_cast<std::int64_t>(bytes);
        if (total_ > 0 && steady_seconds() > last_ + seconds_between) {
            last_ = steady_seconds();
            spdlog::info("reading the data once, for their checksum: {:.1f} of {:.1f} GB",
                         static_cast<double>(read_) / 1e9, static_cast<double>(total_) / 1e9);
        }
    }

private:
    static constexpr double seconds_between = 10;
    std::int64_t total_ = 0;
    std::int64_t read_ = 0;
    double last_ = steady_seconds();
};

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

}  // namespace

std::string fingerprint(const Sets& sets) {
    std::uint32_t crc = 0;
    ReadingProgress progress(sets);
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
            progress.add(pixels.size());
        });
        crc = crc32c(std::as_bytes(std::span(set->labels)), crc);
        crc = crc32c(std::as_bytes(std::span(set->targets)), crc);
        crc = crc32c(std::as_bytes(std::span(set->validation)), crc);
        crc = crc32c(std::as_bytes(std::span(set->system_ends)), crc);
    }
    return fmt::format("{:08x}", crc);
}

}  // namespace finch::data
