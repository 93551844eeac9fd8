#pragma once

#include "finch/nn/model.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace finch::nn {

/// pytorch: every weight and bias uniform within ±1/√fan_in, as torch.nn.Conv2d and Linear begin (kaiming_uniform with
/// a = √5). he: weights normal with a deviation of √(2/fan_in) (kaiming_normal for relu). xavier: weights uniform
/// within ±√(6/(fan_in + fan_out)) (xavier_uniform). he and xavier begin with biases of 0.
enum class Initialization { pytorch, he, xavier };
constexpr std::array<std::string_view, 3> words_of(Initialization) {
    return {"pytorch", "he", "xavier"};
}

/// Initial weights; a normalisation begins as the identity. A function of (seed, individual) and what is asked for.
[[nodiscard]] ModelState initial_state(const ModelPlan& plan, std::uint64_t seed, std::uint64_t individual,
                                       Initialization initialization = Initialization::pytorch);

}  // namespace finch::nn
