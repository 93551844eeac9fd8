#include "samples.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <cstddef>

namespace finch::train {
namespace {

std::vector<float> per_channel(const std::vector<double>& values, std::int64_t channels, const char* what) {
    if (values.size() != 1 && values.size() != static_cast<std::size_t>(channels)) {
        throw ConfigError(
            fmt::format("data.normalize.{} has {} values for images of {} channels; give one, or one per "
                        "channel",
                        what, values.size(), channels));
    }
    std::vector<float> result;
    for (std::int64_t channel = 0; channel < channels; ++channel) {
        const std::size_t index = values.size() == 1 ? 0 : static_cast<std::size_t>(channel);
        result.push_back(static_cast<float>(values[index]));
    }
    return result;
}

}  // namespace

Samples::Samples(backend::Device& device, const data::Dataset& dataset, const data::Options& normalisation,
                 std::int64_t batch)
    : device_(device),
      dataset_(dataset),
      mean_(per_channel(normalisation.mean, dataset.channels, "mean")),
      deviation_(per_channel(normalisation.deviation, dataset.channels, "deviation")),
      indices_(static_cast<std::size_t>(batch)),
      labels_(static_cast<std::size_t>(batch)),
      weights_(static_cast<std::size_t>(batch)) {}

void Samples::load(std::span<const std::int64_t> indices, float* input) {
    for (std::size_t i = 0; i < indices_.size(); ++i) {
        const bool real = i < indices.size();
        indices_[i] = real ? indices[i] : -1;
        labels_[i] = real ? dataset_.labels[static_cast<std::size_t>(indices[i])] : 0;
        weights_[i] = real ? 1.0F : 0.0F;
    }
    device_.gather_normalised(dataset_.pixels, dataset_.pixels_per_image(), indices_, mean_, deviation_, input);
}

}  // namespace finch::train
