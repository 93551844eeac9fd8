#include "finch/train/class_weights.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/data/labels.hpp"

#include <cstddef>
#include <iterator>

namespace finch::train {

std::vector<float> class_weights(const Options& options, const data::Dataset& dataset,
                                 std::span<const std::int64_t> training) {
    const auto classes = static_cast<std::size_t>(dataset.classes);
    if (!options.class_weights.empty()) {
        if (options.class_weights.size() != classes) {
            throw ConfigError(fmt::format("training.class_weights: has {} weights for {} classes; give one for each",
                                          options.class_weights.size(), classes));
        }
        return {options.class_weights.begin(), options.class_weights.end()};
    }
    if (!options.balanced_classes) {
        return {};
    }
    std::vector<double> samples(classes);
    for (const std::int64_t sample : training) {
        samples[static_cast<std::size_t>(dataset.labels[static_cast<std::size_t>(sample)])] += 1;
    }
    std::vector<float> weights;
    for (const double count : samples) {
        if (count == 0) {
            throw ConfigError(
                fmt::format("training.balanced_classes: no sample that trains has the label {}; give the "
                            "weights in training.class_weights",
                            data::label_text(dataset, std::ssize(weights))));
        }
        weights.push_back(
            static_cast<float>(static_cast<double>(training.size()) / (count * static_cast<double>(classes))));
    }
    return weights;
}

double weight_of(std::span<const float> weights, const data::Dataset& dataset, std::span<const std::int64_t> samples) {
    if (weights.empty()) {
        return static_cast<double>(samples.size());
    }
    double sum = 0;
    for (const std::int64_t sample : samples) {
        const std::int32_t label = dataset.labels[static_cast<std::size_t>(sample)];
        sum += static_cast<double>(weights[static_cast<std::size_t>(label)]);
    }
    return sum;
}

}  // namespace finch::train
