#pragma once

#include <cstdint>
#include <kernel_launch.hpp>

// The mean over the pixels of (batch, pixels, channels).
namespace finch::backend::cuda {

/// y (batch, channels).
struct MeanForward {
    static constexpr int max_threads = 256;
    std::int64_t batch, pixels, channels;
    const float* x;
    float* y;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < batch * channels; i += thread.global_count()) {
            const float* from = x + i / channels * pixels * channels + i % channels;
            float sum = 0.0F;
            for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
                sum += from[pixel * channels];
            }
            y[i] = sum / static_cast<float>(pixels);
        }
    }
};

struct MeanBackward {
    static constexpr int max_threads = 256;
    std::int64_t batch, pixels, channels;
    const float* grad_y;
    float* grad_x;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t sample = pixels * channels;
        for (std::int64_t i = thread.global_index(); i < batch * sample; i += thread.global_count()) {
            grad_x[i] = grad_y[i / sample * channels + i % channels] / static_cast<float>(pixels);
        }
    }
};

}  // namespace finch::backend::cuda
