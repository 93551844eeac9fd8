#pragma once

#include "finch/comm/group.hpp"
#include "finch/nn/model.hpp"
#include "finch/train/training.hpp"

#include <cstdint>
#include <span>

namespace finch::train {

/// Collective over the worker. The model as it is (packed), on `samples` of `dataset`; none: on all. Throws ConfigError
/// if its shape is not the model's; std::bad_alloc and StorageError on all ranks.
[[nodiscard]] Measured measure_model(backend::Device& device, const comm::Group& group, nn::Model& model,
                                     const Recipe& recipe, const data::Dataset& dataset,
                                     std::span<const std::int64_t> samples = {});

}  // namespace finch::train
