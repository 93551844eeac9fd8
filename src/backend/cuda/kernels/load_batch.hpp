#pragma once

#include "kernel_launch.hpp"
#include "kernels/numbers.hpp"
#include "step_row.hpp"

#include <cstdint>

namespace finch::backend::cuda {

/// Begins the step: copies its row to `current`, for later kernels, and multiplies grad_scale by the loss scale.
template <class Thread>
FINCH_DEVICE void begin_step(Thread& thread, const StepView& step) {
    if (thread.global_index() == 0) {
        step.state->current = step.present_row();
        step.state->current.grad_scale *= step.state->loss_scale.scale;
    }
}

/// The kernel that begins a step and writes its normalised images to `out` (batch, H·W·C). Each image is divided
/// among `parts` blocks. Each thread processes `width` consecutive pixels. `width` is 4 if the number of bytes of an
/// image is a multiple of 4 and both pointers are aligned, otherwise 1.
template <int width>
struct LoadBatch {
    static constexpr int max_threads = 256;
    static constexpr bool begins_step = true;
    StepView step;
    float* out;
    int parts;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        begin_step(thread, step);
        const int sample = thread.block_x() / parts;
        const std::int64_t group =
            static_cast<std::int64_t>(thread.block_x() % parts) * thread.count() + thread.index();
        const std::int64_t begin = group * width;
        if (begin >= step.pixels_per_image) {
            return;
        }
        const std::int64_t index = step.present_indices()[sample];
        Vector<float, width> values{};
        if (index >= 0) {
            const auto bytes = load<width>(step.pixels + index * step.pixels_per_image + begin);
            FINCH_UNROLL for (int i = 0; i < width; ++i) {
                // An image has fewer than 2³² pixels, so a 32-bit division is sufficient. A 32-bit division is much
                // faster than a 64-bit division.
                const unsigned channel =
                    step.channels == 1 ? 0U : static_cast<unsigned>(begin + i) % static_cast<unsigned>(step.channels);
                const float pixel = static_cast<float>(bytes.numbers[i]) / 255.0F;
                values.numbers[i] = (pixel - step.mean[channel]) / step.deviation[channel];
            }
        }
        store(values, out + sample * step.pixels_per_image + begin);
    }
};

/// Does the same as LoadBatch, but for float pixels and for distorted images. One thread processes one channel of one
/// pixel. The grid is grid_for() with the number of elements.
struct LoadEachPixel {
    static constexpr int max_threads = 256;
    static constexpr bool begins_step = true;
    StepView step;
    float* out;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        begin_step(thread, step);
        const std::int64_t count = step.batch * step.pixels_per_image;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            const std::int64_t sample = i / step.pixels_per_image;
            const std::int64_t index = step.present_indices()[sample];
            out[i] = index < 0 ? 0.0F : value(sample, index, i % step.pixels_per_image);
        }
    }

private:
    [[nodiscard]] FINCH_DEVICE float value(std::int64_t sample, std::int64_t index, std::int64_t at) const {
        const std::int64_t channel = at % step.channels;
        PixelSource source{PixelFrom::image, at / step.channels};
        Distortion by;
        if (step.distortions.any()) {
            const StepRow& row = step.present_row();
            by = step.distortions.of(row.random_key, row.first_sample + sample);
            source = step.distortions.source(by, source.pixel / step.distortions.width,
                                             source.pixel % step.distortions.width);
        }
        if (source.from == PixelFrom::cut) {
            return 0.0F;
        }
        const auto value_of = [&](std::int64_t pixel) {
            return step.pixel(index * step.pixels_per_image + pixel * step.channels + channel);
        };
        float seen = 0;
        if (source.from == PixelFrom::image) {
            seen = value_of(source.pixel);
        } else if (source.from == PixelFrom::turned) {
            seen = step.distortions.turned(by, source.pixel, value_of);
        }
        return (seen - step.mean[channel]) / step.deviation[channel];
    }
};

}  // namespace finch::backend::cuda
