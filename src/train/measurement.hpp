#pragma once

#include "finch/comm/group.hpp"
#include "finch/nn/model.hpp"
#include "finch/train/training.hpp"

#include "samples.hpp"

#include <cstdint>
#include <span>

namespace finch::train {

/// Adds the loss of the images `indices` (at most a batch) to `sums`. model.logits() then holds their logits.
void evaluate(backend::Device& device, nn::Model& model, Samples& samples, std::span<const std::int64_t> indices,
              backend::LossSums& sums);

/// Collective over the worker. The model as it is (packed), on the whole of `dataset`.
[[nodiscard]] Measured measure_model(backend::Device& device, const comm::Group& group, nn::Model& model,
                                     const data::Options& normalisation, const data::Dataset& dataset);

}  // namespace finch::train
