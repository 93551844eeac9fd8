#include "step_context.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace finch::backend::cpu {
namespace {

/// log Σ exp(row), by way of the largest entry so that nothing overflows.
double log_sum_exp(std::span<const float> row, float largest) {
    double sum = 0;
    for (const float logit : row) {
        sum += std::exp(static_cast<double>(logit) - largest);
    }
    return largest + std::log(sum);
}

/// Adds one sample to `sums`; `grad`, where it is not null, becomes its gradient.
void add_sample(std::span<const float> row, std::size_t label, const StepScalars& scalars, float* grad,
                LossSums& sums) {
    const auto largest = std::max_element(row.begin(), row.end());
    const double total = log_sum_exp(row, *largest);
    const auto smoothing = static_cast<double>(scalars.label_smoothing);
    const double spread = smoothing / static_cast<double>(row.size());
    sums.loss += total - (1 - smoothing) * static_cast<double>(row[label]);
    if (smoothing > 0) {
        sums.loss -= spread * std::accumulate(row.begin(), row.end(), 0.0);
    }
    sums.correct += static_cast<std::size_t>(largest - row.begin()) == label ? 1 : 0;
    sums.samples += 1;
    for (std::size_t c = 0; grad != nullptr && c < row.size(); ++c) {
        const double target = (c == label ? 1 - smoothing : 0.0) + spread;
        const double share = std::exp(static_cast<double>(row[c]) - total) - target;
        grad[c] = static_cast<float>(share * static_cast<double>(scalars.grad_scale));
    }
}

}  // namespace

void CpuStepContext::fill(std::span<const std::int64_t> indices, std::span<const StepScalars> steps) {
    samples_ = real_samples(indices, steps.size(), batch_, capacity());
    indices_.assign(indices.begin(), indices.end());
    steps_.assign(steps.begin(), steps.end());
    begun_ = 0;
}

void CpuStepContext::load_batch(float* out) const {
    const std::size_t channels = images_.mean.size();
    const auto size = static_cast<std::size_t>(images_.pixels_per_image);
    std::int64_t place = scalars().first_sample;
    for (const std::int64_t index : batch_indices()) {
        const std::uint8_t* image =
            images_.pixels.data() + static_cast<std::size_t>(std::max<std::int64_t>(0, index)) * size;
        if (index < 0) {
            std::fill_n(out, size, 0.0F);
        } else if (images_.distortions.any()) {
            load_distorted(image, place, out);
        } else {
            for (std::size_t i = 0; i < size; ++i) {
                out[i] = normalised(image[i], channels == 1 ? 0 : i % channels);
            }
        }
        out += size;
        ++place;
    }
}

void CpuStepContext::load_distorted(const std::uint8_t* image, std::int64_t place, float* out) const {
    const Distortions& distortions = images_.distortions;
    const Distortion by = distortions.of({{scalars().random_key[0], scalars().random_key[1]}}, place);
    const std::size_t channels = images_.mean.size();
    for (std::int64_t row = 0; row < distortions.height; ++row) {
        for (std::int64_t column = 0; column < distortions.width; ++column, out += channels) {
            const PixelSource source = distortions.source(by, row, column);
            for (std::size_t c = 0; c < channels; ++c) {
                const bool inside = source.from == PixelFrom::image;
                const std::uint8_t pixel = inside ? image[static_cast<std::size_t>(source.pixel) * channels + c] : 0;
                out[c] = source.from == PixelFrom::cut ? 0.0F : normalised(pixel, c);
            }
        }
    }
}

void CpuStepContext::softmax_cross_entropy(const float* logits, std::int64_t classes, float* grad) {
    const auto columns = static_cast<std::size_t>(classes);
    std::size_t row = 0;
    for (const std::int64_t index : batch_indices()) {
        float* grad_row = grad == nullptr ? nullptr : grad + row * columns;
        if (index >= 0) {
            const auto label = static_cast<std::size_t>(images_.labels[static_cast<std::size_t>(index)]);
            add_sample({logits + row * columns, columns}, label, scalars(), grad_row, sums_);
        } else if (grad_row != nullptr) {
            std::fill_n(grad_row, columns, 0.0F);
        }
        ++row;
    }
}

}  // namespace finch::backend::cpu
