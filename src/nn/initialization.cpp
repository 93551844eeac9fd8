#include "finch/nn/initialization.hpp"

#include "finch/base/random.hpp"

#include <cmath>
#include <cstddef>

namespace finch::nn {

void initialize(const ModelPlan& plan, std::uint64_t seed, std::uint64_t individual, std::span<float> parameters) {
    for (std::size_t index = 0; index < plan.tensors.size(); ++index) {
        const TensorInfo& tensor = plan.tensors[index];
        const double bound = 1.0 / std::sqrt(static_cast<double>(tensor.fan_in));
        // A stream per tensor: a tensor's values do not depend on the sizes of those before it.
        RandomStream stream(seed, Purpose::initial_weights, individual, static_cast<std::uint32_t>(index));
        for (float& value :
             parameters.subspan(static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(tensor.size))) {
            value = static_cast<float>(stream.uniform(-bound, bound));
        }
    }
}

}  // namespace finch::nn
