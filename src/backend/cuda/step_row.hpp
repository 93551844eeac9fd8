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
    StepRow current = {};   ///< the present step's, its grad_scale times the loss scale
    LossSums sums = {};
    LossScale loss_scale = {};
    std::int32_t found_overflow = 0;  ///< 1: a gradient of the present step is not finite
};

/// A context's device memory: what kernels take by value.
struct StepView {
    const StepRow* rows = nullptr;          ///< (steps)
    const std::int64_t* indices = nullptr;  ///< (steps, batch); −1 is padding
    StepState* state = nullptr;
    const std::uint8_t* pixels = nullptr;  ///< (samples, H·W·C), as bytes
    const void* answers = nullptr;         ///< labels int32 (samples), or targets float (samples, target_size)
    const float* mean = nullptr;       ///< (channels); a pixel p becomes (p − mean) / deviation, p of a byte / 255
    const float* deviation = nullptr;  ///< (channels)
    const float* class_weights = nullptr;  ///< (classes), or null: all 1
    std::int64_t pixels_per_image = 0;     ///< H·W·C
    std::int32_t float_pixels = 0;         ///< 1: a pixel is a float, otherwise a byte
    std::int64_t channels = 1;
    std::int64_t batch = 0;
    Distortions distortions = {};

    [[nodiscard]] FINCH_PORTABLE std::int32_t label(std::int64_t sample) const {
        return static_cast<const std::int32_t*>(answers)[sample];
    }
    /// (target_size)
    [[nodiscard]] FINCH_PORTABLE const float* target(std::int64_t sample, std::int64_t target_size) const {
        return static_cast<const float*>(answers) + sample * target_size;
    }
    /// Before its normalisation; `at`: sample · H·W·C + its place.
    [[nodiscard]] FINCH_PORTABLE float pixel(std::int64_t at) const {
        return float_pixels != 0 ? reinterpret_cast<const float*>(pixels)[at] : static_cast<float>(pixels[at]) / 255.0F;
    }

    /// (batch), of the present step.
    [[nodiscard]] FINCH_PORTABLE const std::int64_t* present_indices() const {
        return indices + (state->next - 1) * batch;
    }
};

}  // namespace finch::backend::cuda
