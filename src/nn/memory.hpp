#pragma once

#include "finch/nn/plan.hpp"

namespace finch::nn {

/// Sets where the plan's values and their gradients lie, so that those that are alive at the same moment of a training
/// step do not overlap, and `activations`.
void place_activations(ModelPlan& plan);

}  // namespace finch::nn
