#include "finch/data/recorded_pixels.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <variant>
#include <vector>

namespace finch::data {
namespace {

constexpr const char* pixels_name = "data/float_pixels";
constexpr const char* shape_name = "data/shape";
constexpr const char* outputs_name = "data/outputs";
constexpr const char* mean_name = "data/mean";
constexpr const char* deviation_name = "data/deviation";

/// Returns the values of the array `name`. Throws FileError if there is none with this type and `count` values.
template <class Value>
const std::vector<Value>& values_of(const NamedArrays& arrays, const char* name, std::int64_t count) {
    const auto* const values = std::get_if<std::vector<Value>>(&find_array(arrays, name).values);
    if (values == nullptr || std::ssize(*values) != count) {
        throw FileError(fmt::format("the array {} does not have {} values of its type", name, count));
    }
    return *values;
}

}  // namespace

void record_pixels(NamedArrays& arrays, const Dataset& set, const Options& options) {
    std::erase_if(arrays, [](const NamedArray& array) { return array.name.starts_with("data/"); });
    arrays.push_back({pixels_name, {}, std::vector<std::int64_t>{set.float_pixels ? 1 : 0}});
    arrays.push_back({shape_name, {3}, std::vector<std::int64_t>{set.height, set.width, set.channels}});
    arrays.push_back({outputs_name, {}, std::vector<std::int64_t>{set.outputs()}});
    const Normalisation normalisation = normalisation_of(options, set);
    arrays.push_back({mean_name, {set.channels}, normalisation.mean});
    arrays.push_back({deviation_name, {set.channels}, normalisation.deviation});
}

void take_recorded_pixels(const NamedArrays& arrays, Dataset& set) {
    set.measured_mean = {};
    set.measured_deviation = {};
    for (const NamedArray& array : arrays) {
        if (const auto* const numbers = std::get_if<std::vector<double>>(&array.values)) {
            if (array.name == mean_name) {
                set.measured_mean = *numbers;
            } else if (array.name == deviation_name) {
                set.measured_deviation = *numbers;
            }
        }
        const auto* const counts = std::get_if<std::vector<std::int64_t>>(&array.values);
        if (array.name == outputs_name && counts != nullptr && set.targets.empty()) {
            set.classes = std::max(set.classes, counts->front());  // the data may lack the last classes
        }
        if (array.name == pixels_name && counts != nullptr && (counts->front() != 0) != set.float_pixels) {
            const auto kind = [](bool are_floats) { return are_floats ? "floating-point numbers" : "bytes"; };
            throw ConfigError(fmt::format("the data's pixels are {}, but the network was trained with {}; accepted: {}",
                                          kind(set.float_pixels), kind(!set.float_pixels), kind(!set.float_pixels)));
        }
    }
}

RecordedImages recorded_images(const NamedArrays& arrays) {
    const auto& shape = values_of<std::int64_t>(arrays, shape_name, 3);
    return {.height = shape[0],
            .width = shape[1],
            .channels = shape[2],
            .outputs = values_of<std::int64_t>(arrays, outputs_name, 1).front(),
            .float_pixels = values_of<std::int64_t>(arrays, pixels_name, 1).front() != 0,
            .normalisation = {values_of<double>(arrays, mean_name, shape[2]),
                              values_of<double>(arrays, deviation_name, shape[2])}};
}

}  // namespace finch::data
