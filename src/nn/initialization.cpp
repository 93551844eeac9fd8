#include "finch/nn/initialization.hpp"

#include "finch/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace finch::nn {
namespace {

/// Fills a weight or a bias with initial values.
void fill(std::span<float> values, const TensorInfo& tensor, Initialization initialization, RandomStream& stream) {
    const bool is_bias = tensor.shape.size() == 1;
    const auto fan_in = static_cast<double>(tensor.fan_in);
    const auto fill_with = [values](auto draw) {
        std::generate(values.begin(), values.end(), [&draw] { return static_cast<float>(draw()); });
    };
    const auto fill_within = [&](double bound) { fill_with([&] { return stream.uniform(-bound, bound); }); };
    switch (initialization) {
        case Initialization::pytorch:
            fill_within(1.0 / std::sqrt(fan_in));
            return;
        case Initialization::he:
            fill_with([&] { return is_bias ? 0 : std::sqrt(2 / fan_in) * stream.normal(); });
            return;
        case Initialization::xavier: {
            // fan_out of a weight (outputs, inputs, kernel, kernel) is the product of all axes except `inputs`.
            const double fan_out =
                is_bias ? 0 : static_cast<double>(tensor.size) / static_cast<double>(tensor.shape[1]);
            fill_within(is_bias ? 0 : std::sqrt(6 / (fan_in + fan_out)));
            return;
        }
    }
}

}  // namespace

ModelState initial_state(const ModelPlan& plan, std::uint64_t seed, std::uint64_t individual,
                         Initialization initialization) {
    ModelState state{.parameters = std::vector<float>(static_cast<std::size_t>(plan.parameters)),
                     .buffers = std::vector<float>(static_cast<std::size_t>(plan.buffers))};
    std::uint32_t learning = 0;
    for (const TensorInfo& tensor : plan.tensors) {
        const auto values =
            std::span(tensor.learns ? state.parameters : state.buffers)
                .subspan(static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(tensor.size));
        // Each parameter tensor has its own random stream, so its values do not depend on the sizes of other tensors.
        RandomStream stream(seed, Purpose::initial_weights, individual, learning);
        learning += tensor.learns ? 1 : 0;
        if (tensor.fan_in == 0) {
            std::fill(values.begin(), values.end(), tensor.initial);
            continue;
        }
        fill(values, tensor, initialization, stream);
    }
    return state;
}

}  // namespace finch::nn
