#include "finch/data/excerpt.hpp"

#include <cstddef>
#include <numeric>

namespace finch::data {

std::int64_t pixel_bytes(const Dataset& set) {
    return set.samples() * set.bytes_per_image();
}

Dataset excerpt(const Dataset& set, std::span<const std::int64_t> training, std::span<const std::int64_t> validation) {
    std::vector<std::int64_t> samples(training.begin(), training.end());
    samples.insert(samples.end(), validation.begin(), validation.end());
    Dataset some{.height = set.height,
                 .width = set.width,
                 .channels = set.channels,
                 .classes = set.classes,
                 .target_size = set.target_size,
                 .float_pixels = set.float_pixels,
                 .measured_mean = set.measured_mean,
                 .measured_deviation = set.measured_deviation};
    const auto targets = static_cast<std::ptrdiff_t>(set.target_size);
    for (const std::int64_t sample : samples) {
        if (set.targets.empty()) {
            some.labels.own().push_back(set.labels[static_cast<std::size_t>(sample)]);
        } else {
            const auto target = set.targets.begin() + sample * targets;
            some.targets.own().insert(some.targets.own().end(), target, target + targets);
        }
    }
    some.validation.own().resize(validation.size());
    std::iota(some.validation.own().begin(), some.validation.own().end(), std::ssize(training));
    visit_pixels(set, samples, [&some](std::span<const std::uint8_t> pixels) {
        some.pixels.own().insert(some.pixels.own().end(), pixels.begin(), pixels.end());
    });
    return some;
}

}  // namespace finch::data
