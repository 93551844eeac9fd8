#pragma once

#include "finch/nn/model.hpp"

#include <cstdint>

namespace finch::nn {

/// PyTorch's default initial weights: every weight and bias uniform within ±1/√fan_in (torch.nn.Conv2d,
/// torch.nn.Linear: kaiming_uniform with a = √5); batch normalisation begins as the identity. A function of (seed,
/// individual) alone.
[[nodiscard]] ModelState initial_state(const ModelPlan& plan, std::uint64_t seed, std::uint64_t individual);

}  // namespace finch::nn
