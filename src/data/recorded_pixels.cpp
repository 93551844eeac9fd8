#include "finch/data/recorded_pixels.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/data/normalisation.hpp"

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

namespace finch::data {
namespace {

constexpr const char* pixels_name = "data/float_pixels";
constexpr const char* shape_name = "data/shape";
constexpr const char* outputs_name = "data/outputs";
constexpr const char* mean_name = "data/mean";
constexpr const char* deviation_name = "data/deviation";

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

}  // namespace finch::data
