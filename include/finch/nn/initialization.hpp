#pragma once

#include "finch/nn/spec.hpp"

#include <cstdint>
#include <span>

namespace finch::nn {

/// PyTorch's default initial weights: every weight and bias uniform within ±1/√fan_in (torch.nn.Conv2d,
/// torch.nn.Linear: kaiming_uniform with a = √5). A function of (seed, individual) alone. `parameters` is a host arena
/// laid out as `plan.tensors` say.
void initialize(const ModelPlan& plan, std::uint64_t seed, std::uint64_t individual, std::span<float> parameters);

}  // namespace finch::nn
