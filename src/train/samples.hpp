#pragma once

#include "finch/backend/device.hpp"
#include "finch/data/dataset.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace finch::train {

/// Fills batches of one size from a data set; fewer samples are padded with some of weight 0.
class Samples {
public:
    /// `dataset` must outlive it.
    Samples(backend::Device& device, const data::Dataset& dataset, const data::Options& normalisation,
            std::int64_t batch);

    /// Writes the images `indices` of the data set (at most `batch`), normalised, to `input` (batch, H, W, C), and
    /// their labels and weights to labels() and weights().
    void load(std::span<const std::int64_t> indices, float* input);

    [[nodiscard]] std::span<const std::int32_t> labels() const noexcept { return labels_; }
    [[nodiscard]] std::span<const float> weights() const noexcept { return weights_; }

private:
    backend::Device& device_;
    const data::Dataset& dataset_;
    std::vector<float> mean_;       ///< one per channel
    std::vector<float> deviation_;  ///< one per channel
    std::vector<std::int64_t> indices_;
    std::vector<std::int32_t> labels_;
    std::vector<float> weights_;
};

}  // namespace finch::train
