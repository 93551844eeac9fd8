#include "finch/nn/initialization.hpp"

#include "finch/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace finch::nn {

ModelState initial_state(const ModelPlan& plan, std::uint64_t seed, std::uint64_t individual) {
    ModelState state{.parameters = std::vector<float>(static_cast<std::size_t>(plan.parameters)),
                     .buffers = std::vector<float>(static_cast<std::size_t>(plan.buffers))};
    std::uint32_t learning = 0;
    for (const TensorInfo& tensor : plan.tensors) {
        const auto values =
            std::span(tensor.learns ? state.parameters : state.buffers)
                .subspan(static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(tensor.size));
        // A stream per parameter: a tensor's values do not depend on the sizes of those before it.
        RandomStream stream(seed, Purpose::initial_weights, individual, learning);
        learning += tensor.learns ? 1 : 0;
        if (tensor.fan_in == 0) {
            std::fill(values.begin(), values.end(), tensor.initial);
            continue;
        }
        const double bound = 1.0 / std::sqrt(static_cast<double>(tensor.fan_in));
        for (float& value : values) {
            value = static_cast<float>(stream.uniform(-bound, bound));
        }
    }
    return state;
}

}  // namespace finch::nn
