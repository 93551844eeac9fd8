#include "finch/data/expected.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"
#include "finch/data/normalisation.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <variant>

namespace finch::data {
namespace {

void check_number(const char* key, std::optional<std::int64_t> expected, std::int64_t found, const Options& options) {
    if (expected && *expected != found) {
        throw ConfigError(
            fmt::format("data.expect.{}: is {}, but {} has {}; accepted: what is there, or data.expect: none", key,
                        *expected, places_text(options), found));
    }
}

/// Returns the indices of the validation samples that the user sets apart: the last of `samples` indices.
std::vector<std::int64_t> set_apart(const Options& options, std::int64_t samples) {
    if (std::holds_alternative<SampledValidation>(options.validation)) {
        return {};
    }
    if (!options.expect->validation) {
        throw ConfigError(
            "data.expect.validation: has no value, but data.validation sets samples apart; accepted: how many");
    }
    std::vector<std::int64_t> apart(static_cast<std::size_t>(*options.expect->validation));
    std::iota(apart.begin(), apart.end(), samples - *options.expect->validation);
    return apart;
}

Dataset stand_in(const Expected& expected, std::int64_t samples) {
    Dataset set{.height = expected.shape.at(0),
                .width = expected.shape.at(1),
                .channels = expected.shape.at(2),
                .classes = expected.classes.value_or(0),
                .target_size = expected.targets.value_or(0)};
    if (expected.targets) {
        set.targets.own().resize(static_cast<std::size_t>(samples * *expected.targets));
        return set;
    }
    set.labels.own().resize(static_cast<std::size_t>(samples));
    std::iota(set.labels.own().begin(), set.labels.own().end(), 0);
    for (std::int32_t& label : set.labels.own()) {
        label %= static_cast<std::int32_t>(set.classes);
    }
    return set;
}

std::vector<std::uint8_t> noise(std::int64_t bytes) {
    RandomStream random(1, Purpose::generated_data);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(bytes));
    std::generate(pixels.begin(), pixels.end(), [&random] { return static_cast<std::uint8_t>(random.bits()); });
    return pixels;
}

}  // namespace

void check_expected(const Options& options, const Dataset& training, const Dataset& test) {
    if (!options.expect) {
        return;
    }
    const std::vector<std::int64_t> shape{training.height, training.width, training.channels};
    if (options.expect->shape != shape) {
        throw ConfigError(
            fmt::format("data.expect.shape: is [{}], but {} has [{}]; accepted: what is there, or data.expect: none",
                        fmt::join(options.expect->shape, ", "), places_text(options), fmt::join(shape, ", ")));
    }
    check_number("classes", options.expect->classes, training.classes, options);
    check_number("targets", options.expect->targets, training.target_size, options);
    check_number("samples", options.expect->samples, training.samples(), options);
    check_number("validation", options.expect->validation, std::ssize(training.validation), options);
    check_number("test", options.expect->test, test.samples(), options);
}

Datasets stand_in(const Options& options) {
    const Expected& expected = options.expect.value();
    Datasets sets{.training = stand_in(expected, expected.samples),
                  .test = stand_in(expected, expected.test.value_or(0)),
                  .fingerprint = ""};
    sets.training.validation = set_apart(options, expected.samples);
    if (needs_moments(options)) {
        const auto channels = static_cast<std::size_t>(sets.training.channels);
        sets.training.measured_mean = std::vector(channels, 0.5);
        sets.training.measured_deviation = std::vector(channels, 0.5);
    }
    return sets;
}

bool is_stand_in(const Dataset& set) {
    return !set.store && set.pixels.empty() && set.samples() > 0;
}

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
    if (is_stand_in(set)) {
        some.pixels = noise(pixel_bytes(some));
    } else {
        visit_pixels(set, samples, [&some](std::span<const std::uint8_t> pixels) {
            some.pixels.own().insert(some.pixels.own().end(), pixels.begin(), pixels.end());
        });
    }
    return some;
}

}  // namespace finch::data
