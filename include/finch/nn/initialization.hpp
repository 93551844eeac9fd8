#pragma once

#include "finch/nn/model.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace finch::nn {

/// The distribution of initial weights. With `pytorch`, weights and biases are uniform within ±1/√fan_in, the default
/// of torch.nn.Conv2d and Linear (kaiming_uniform with a = √5). With `he`, weights are normal with standard deviation
/// √(2/fan_in) (kaiming_normal for relu), and biases are 0. With `xavier`, weights are uniform within ±√(6/(fan_in +
/// fan_out)) (xavier_uniform), and biases are 0.
enum class Initialization { pytorch, he, xavier };
constexpr std::array<std::string_view, 3> words_of(Initialization) {
    return {"pytorch", "he", "xavier"};
}

/// Returns the initial weights, which depend only on the arguments. A normalisation layer starts as the identity.
[[nodiscard]] ModelState initial_state(const ModelPlan& plan, std::uint64_t seed, std::uint64_t individual,
                                       Initialization initialization = Initialization::pytorch);

}  // namespace finch::nn
