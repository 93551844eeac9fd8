#pragma once

#include "finch/backend/device.hpp"

#include <cmath>
#include <cstdint>
#include <variant>

// What a Feed keeps in the device's memory, as its kernels see it.
namespace finch::backend::cuda {

/// A step's numbers as kernels take them: whatever needs a power or double is computed on the host.
struct FeedRow {
    float grad_scale = 0;
    float rate = 0;  ///< the learning rate; Adam's is divided by the correction of its first moment
    float weight_decay = 0;
    float keep = 1;  ///< decoupled decay: parameters are multiplied with it before anything else
    float momentum = 0;
    std::int32_t nesterov = 0;
    std::int32_t first = 0;  ///< 1 in the first step of a training
    float beta1 = 0;
    float rest1 = 0;  ///< 1 − beta1
    float beta2 = 0;
    float rest2 = 0;
    float root_correction = 1;  ///< of the second moment
    float epsilon = 0;
    float rho = 0;
    float rest = 0;  ///< 1 − rho
    std::int32_t unused = 0;
};
static_assert(sizeof(FeedRow) == 64);

/// Which kernel updates the parameters.
enum class OptimizerKind { sgd, sgd_momentum, adam, adadelta };

[[nodiscard]] inline OptimizerKind optimizer_kind(const OptimizerStep& step) {
    if (const auto* sgd = std::get_if<SgdStep>(&step)) {
        return sgd->momentum == 0.0F ? OptimizerKind::sgd : OptimizerKind::sgd_momentum;
    }
    return std::holds_alternative<AdamStep>(step) ? OptimizerKind::adam : OptimizerKind::adadelta;
}

inline void set_numbers(FeedRow& row, const SgdStep& step) {
    row.rate = step.learning_rate;
    row.weight_decay = step.weight_decay;
    row.momentum = step.momentum;
    row.nesterov = step.nesterov ? 1 : 0;
    row.first = step.first ? 1 : 0;
}

inline void set_numbers(FeedRow& row, const AdamStep& step) {
    const auto number = static_cast<double>(step.step);
    row.rate = static_cast<float>(step.learning_rate / (1.0 - std::pow(step.beta1, number)));
    row.root_correction = static_cast<float>(std::sqrt(1.0 - std::pow(step.beta2, number)));
    row.keep = step.decoupled ? 1.0F - step.learning_rate * step.weight_decay : 1.0F;
    row.weight_decay = step.decoupled ? 0.0F : step.weight_decay;
    row.beta1 = static_cast<float>(step.beta1);
    row.beta2 = static_cast<float>(step.beta2);
    row.rest1 = static_cast<float>(1.0 - step.beta1);  // not 1.0F − beta1, which is off by 1e-5
    row.rest2 = static_cast<float>(1.0 - step.beta2);
    row.epsilon = step.epsilon;
}

inline void set_numbers(FeedRow& row, const AdadeltaStep& step) {
    row.rate = step.learning_rate;
    row.weight_decay = step.weight_decay;
    row.epsilon = step.epsilon;
    row.rho = step.rho;
    row.rest = 1.0F - step.rho;
}

[[nodiscard]] inline FeedRow feed_row(const StepNumbers& numbers) {
    FeedRow row;
    row.grad_scale = numbers.grad_scale;
    std::visit([&](const auto& step) { set_numbers(row, step); }, numbers.optimizer);
    return row;
}

/// Where a feed is. In device memory, one per feed; copied as a whole.
struct FeedState {
    std::int64_t next = 0;  ///< the row that the present step uses
    FeedRow current = {};   ///< the numbers of the step whose loss was last
    LossSums sums = {};
};

/// A feed's device memory: what kernels take by value.
struct FeedView {
    const FeedRow* rows = nullptr;          ///< (steps)
    const std::int64_t* indices = nullptr;  ///< (steps, batch); −1 is padding
    FeedState* state = nullptr;
    const std::uint8_t* pixels = nullptr;  ///< (samples, H·W·C)
    const std::int32_t* labels = nullptr;  ///< (samples)
    const float* mean = nullptr;           ///< (channels); a pixel p becomes (p / 255 − mean) / deviation
    const float* deviation = nullptr;      ///< (channels)
    std::int64_t pixels_per_image = 0;     ///< H·W·C
    std::int64_t channels = 1;
    std::int64_t batch = 0;
};

}  // namespace finch::backend::cuda
