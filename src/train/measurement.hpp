#pragma once

#include "finch/comm/group.hpp"
#include "finch/nn/model.hpp"
#include "finch/train/training.hpp"

#include <cstdint>
#include <span>

namespace finch::train {

/// Collective over the worker. Measures the model, with its packed weights, on `samples` of `dataset`, or on all
/// samples if `samples` is empty. Throws ConfigError if the shape of the data does not fit the model. Throws
/// std::bad_alloc or StorageError on all ranks if one rank fails.
[[nodiscard]] Measured measure_model(backend::Device& device, const comm::Group& group, nn::Model& model,
                                     const Recipe& recipe, const data::Dataset& dataset,
                                     std::span<const std::int64_t> samples = {});

}  // namespace finch::train
