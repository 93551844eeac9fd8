#pragma once

#include "finch/comm/group.hpp"
#include "finch/nn/model.hpp"
#include "finch/train/training.hpp"

namespace finch::train {

/// Collective over the worker. The model as it is (packed), on the whole of `dataset`.
[[nodiscard]] Measured measure_model(backend::Device& device, const comm::Group& group, nn::Model& model,
                                     const Recipe& recipe, const data::Dataset& dataset);

}  // namespace finch::train
