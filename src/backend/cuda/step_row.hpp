#pragma once

#include "finch/backend/device.hpp"
#include "finch/base/philox.hpp"

#include <cstdint>

// The data of a StepContext in device memory, as kernels use them.
namespace finch::backend::cuda {

/// The scalars of one step.
struct StepRow {
    float grad_scale = 0;
    float label_smoothing = 0;
    OptimizerScalars optimizer = {};
    float average_share = 0;
    PhiloxKey random_key = {};
    std::int64_t first_sample = 0;  ///< index within the batch of the whole worker
    std::int64_t samples = 0;       ///< samples of the batch that are not padding; they come first
};

/// The progress of a StepContext through its steps. Each context has one StepState in device memory, which is copied as
/// a whole.
struct StepState {
    std::int64_t row = 0;  ///< index of the current step's row; after the step's loss, that of the next step's row
    StepRow current = {};  ///< a copy of the current step's row, with grad_scale multiplied by the loss scale
    LossSums sums = {};
    LossScale loss_scale = {};
    std::int32_t found_overflow = 0;  ///< 1: a gradient of the current step is not finite
};

/// A view of a context's device memory. Kernels receive the view by value.
struct StepView {
    const StepRow* rows = nullptr;          ///< (steps)
    const std::int64_t* indices = nullptr;  ///< (steps, batch); −1 is padding
    std::int32_t* predictions = nullptr;    ///< (steps, batch): the predicted classes, from a loss by label
    StepState* state = nullptr;
    const std::uint8_t* pixels = nullptr;  ///< (samples, H·W·C), as bytes
    const void* answers = nullptr;         ///< labels int32 (samples), or targets float (samples, target_size)
    const float* mean = nullptr;           ///< (channels); (pixel − mean) / deviation; bytes are divided by 255
    const float* deviation = nullptr;      ///< (channels)
    const float* class_weights = nullptr;  ///< (classes), or null: all 1
    std::int64_t pixels_per_image = 0;     ///< H·W·C
    std::int32_t float_pixels = 0;         ///< 1: a pixel is a float, otherwise a byte
    std::int64_t channels = 1;
    std::int64_t batch = 0;
    Distortions distortions = {};

    [[nodiscard]] FINCH_PORTABLE std::int32_t label(std::int64_t sample) const {
        return static_cast<const std::int32_t*>(answers)[sample];
    }
    /// Returns the target of a sample: target_size floats.
    [[nodiscard]] FINCH_PORTABLE const float* target(std::int64_t sample, std::int64_t target_size) const {
        return static_cast<const float*>(answers) + sample * target_size;
    }
    /// Returns a pixel before normalisation. `at` is sample · H·W·C + the index within the sample.
    [[nodiscard]] FINCH_PORTABLE float pixel(std::int64_t at) const {
        return float_pixels != 0 ? reinterpret_cast<const float*>(pixels)[at] : static_cast<float>(pixels[at]) / 255.0F;
    }

    /// Returns the current step's row. The kernel that loads the batch needs it; for later kernels there is a copy in
    /// `state->current`.
    [[nodiscard]] FINCH_PORTABLE const StepRow& present_row() const { return rows[state->row]; }
    /// Returns the image indices (batch) of the current step. Valid until the step's loss has ended.
    [[nodiscard]] FINCH_PORTABLE const std::int64_t* present_indices() const { return indices + state->row * batch; }
    /// Returns the predicted classes (batch) of the current step. Valid until the step's loss has ended.
    [[nodiscard]] FINCH_PORTABLE std::int32_t* present_predictions() const { return predictions + state->row * batch; }
};

}  // namespace finch::backend::cuda
