#include "finch/backend/step_context.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>

namespace finch::backend {

std::unique_ptr<StepContext> StepContext::block(std::int64_t first, std::int64_t rows) {
    throw Error(
        fmt::format("a block of rows {} to {}, but the device computes every batch as one block", first, first + rows));
}

std::vector<std::int64_t> real_samples(std::span<const std::int64_t> indices, std::size_t steps, std::size_t batch,
                                       std::int64_t capacity) {
    if (indices.size() != steps * batch || static_cast<std::int64_t>(steps) > capacity) {
        throw Error(fmt::format("batches of {} were given {} indices for {} steps (at most {} at once)", batch,
                                indices.size(), steps, capacity));
    }
    std::vector<std::int64_t> samples;
    for (std::size_t step = 0; step < steps; ++step) {
        const auto of_step = indices.subspan(step * batch, batch);
        const auto padding = std::find_if(of_step.begin(), of_step.end(), [](std::int64_t i) { return i < 0; });
        if (std::any_of(padding, of_step.end(), [](std::int64_t i) { return i >= 0; })) {
            throw Error(fmt::format("step {} has a sample after padding", step));
        }
        samples.push_back(padding - of_step.begin());
    }
    return samples;
}

}  // namespace finch::backend
