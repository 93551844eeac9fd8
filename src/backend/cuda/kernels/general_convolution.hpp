#pragma once

#include "finch/backend/operation.hpp"

#include <cstdint>
#include <kernel_launch.hpp>

// Convolutions of any shape, one result a thread, straight from the definition: NHWC, float32, canonical weights. For
// shapes for which neither Finch's fast kernels nor cuDNN has anything.
namespace finch::backend::cuda {

/// Of so many rows or columns.
[[nodiscard]] FINCH_DEVICE std::int64_t outputs(const ConvolutionShape& s, std::int64_t inputs) {
    return (inputs + s.padding_before + s.padding_after - s.dilation * (s.kernel - 1) - 1) / s.stride + 1;
}

/// y = x ∗ w, without bias.
struct GeneralForward {
    static constexpr int max_threads = 256;
    ConvolutionShape s;
    const float* x;
    const float* weights;
    float* y;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t height = outputs(s, s.height);
        const std::int64_t width = outputs(s, s.width);
        const std::int64_t group_in = s.channels_in / s.groups;
        const std::int64_t group_out = s.channels_out / s.groups;
        const std::int64_t count = s.batch * height * width * s.channels_out;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            const std::int64_t out = i % s.channels_out;
            const std::int64_t column = i / s.channels_out % width;
            const std::int64_t row = i / s.channels_out / width % height;
            const std::int64_t sample = i / s.channels_out / width / height;
            float sum = 0.0F;
            for (std::int64_t k = 0; k < s.kernel * s.kernel; ++k) {
                const std::int64_t r = row * s.stride - s.padding_before + k / s.kernel * s.dilation;
                const std::int64_t c = column * s.stride - s.padding_before + k % s.kernel * s.dilation;
                if (r >= 0 && r < s.height && c >= 0 && c < s.width) {
                    const float* pixel =
                        x + ((sample * s.height + r) * s.width + c) * s.channels_in + out / group_out * group_in;
                    const float* weight = weights + out * group_in * s.kernel * s.kernel + k;
                    for (std::int64_t in = 0; in < group_in; ++in) {
                        sum += pixel[in] * weight[in * s.kernel * s.kernel];
                    }
                }
            }
            y[i] = sum;
        }
    }
};

/// grad_x from the gradient before the activation.
struct GeneralDataGradient {
    static constexpr int max_threads = 256;
    ConvolutionShape s;
    const float* grad_y;
    const float* weights;
    float* grad_x;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t height = outputs(s, s.height);
        const std::int64_t width = outputs(s, s.width);
        const std::int64_t group_in = s.channels_in / s.groups;
        const std::int64_t group_out = s.channels_out / s.groups;
        const std::int64_t count = s.batch * s.height * s.width * s.channels_in;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            const std::int64_t in = i % s.channels_in;
            const std::int64_t column = i / s.channels_in % s.width + s.padding_before;
            const std::int64_t row = i / s.channels_in / s.width % s.height + s.padding_before;
            const std::int64_t sample = i / s.channels_in / s.width / s.height;
            float sum = 0.0F;
            for (std::int64_t k = 0; k < s.kernel * s.kernel; ++k) {
                const std::int64_t r = row - k / s.kernel * s.dilation;
                const std::int64_t c = column - k % s.kernel * s.dilation;
                if (r >= 0 && c >= 0 && r % s.stride == 0 && c % s.stride == 0 && r / s.stride < height &&
                    c / s.stride < width) {
                    const float* grad =
                        grad_y + ((sample * height + r / s.stride) * width + c / s.stride) * s.channels_out;
                    const float* weight = weights + in % group_in * s.kernel * s.kernel + k;
                    const std::int64_t first = in / group_in * group_out;
                    for (std::int64_t out = first; out < first + group_out; ++out) {
                        sum += grad[out] * weight[out * group_in * s.kernel * s.kernel];
                    }
                }
            }
            grad_x[i] = sum;
        }
    }
};

/// The weights' gradient from that before the activation: a block of a power of two of threads for each weight, their
/// shares added in a fixed order. Blocks: x: weights.
struct GeneralWeightGradient {
    static constexpr int max_threads = 128;
    ConvolutionShape s;
    const float* x;
    const float* grad_y;
    float* grad_weights;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        auto* shares = thread.template shared<float>();
        const std::int64_t height = outputs(s, s.height);
        const std::int64_t width = outputs(s, s.width);
        const std::int64_t group_in = s.channels_in / s.groups;
        const std::int64_t group_out = s.channels_out / s.groups;
        const std::int64_t k = thread.block_x() % (s.kernel * s.kernel);
        const std::int64_t out = thread.block_x() / (s.kernel * s.kernel) / group_in;
        const std::int64_t in = thread.block_x() / (s.kernel * s.kernel) % group_in + out / group_out * group_in;
        float sum = 0.0F;
        for (std::int64_t i = thread.index(); i < s.batch * height * width; i += thread.count()) {
            const std::int64_t sample = i / width / height;
            const std::int64_t r = i / width % height * s.stride - s.padding_before + k / s.kernel * s.dilation;
            const std::int64_t c = i % width * s.stride - s.padding_before + k % s.kernel * s.dilation;
            if (r >= 0 && r < s.height && c >= 0 && c < s.width) {
                sum +=
                    x[((sample * s.height + r) * s.width + c) * s.channels_in + in] * grad_y[i * s.channels_out + out];
            }
        }
        shares[thread.index()] = sum;
        for (int half = thread.count() / 2; half > 0; half /= 2) {
            thread.sync();
            if (thread.index() < half) {
                shares[thread.index()] += shares[thread.index() + half];
            }
        }
        if (thread.index() == 0) {
            grad_weights[thread.block_x()] = shares[0];
        }
    }
};

}  // namespace finch::backend::cuda
