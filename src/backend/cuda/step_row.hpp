#pragma once

#include "finch/backend/device.hpp"
#include "finch/base/philox.hpp"

#include <cstdint>

// What a StepContext keeps in the device's memory, as kernels see it.
namespace finch::backend::cuda {

/// A step's scalars.
struct StepRow {
    float grad_scale = 0;
    float label_smoothing = 0;
    OptimizerScalars optimizer = {};
    float average_share = 0;
    PhiloxKey random_key = {};
    std::int64_t first_sample = 0;  ///< place within the batch of the whole worker
    std::int64_t samples = 0;       ///< of the batch that are no padding: the first ones
};

/// Where the steps are. In device memory, one per context; copied as a whole.
struct StepState {
    std::int64_t next = 0;  ///< the row after the present step's
    StepRow current = {};   ///< the present step's
    LossSums sums = {};
};

/// A context's device memory: what kernels take by value.
struct StepView {
    const StepRow* rows = nullptr;          ///< (steps)
    const std::int64_t* indices = nullptr;  ///< (steps, batch); −1 is padding
    StepState* state = nullptr;
    const std::uint8_t* pixels = nullptr;  ///< (samples, H·W·C)
    const std::int32_t* labels = nullptr;  ///< (samples)
    const float* mean = nullptr;           ///< (channels); a pixel p becomes (p / 255 − mean) / deviation
    const float* deviation = nullptr;      ///< (channels)
    std::int64_t pixels_per_image = 0;     ///< H·W·C
    std::int64_t channels = 1;
    std::int64_t batch = 0;
    Distortions distortions = {};

    /// (batch), of the present step.
    [[nodiscard]] FINCH_PORTABLE const std::int64_t* present_indices() const {
        return indices + (state->next - 1) * batch;
    }
};

}  // namespace finch::backend::cuda
