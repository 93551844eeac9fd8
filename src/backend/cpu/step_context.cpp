#include "step_context.hpp"

#include <algorithm>
#include <cmath>

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
void add_sample(std::span<const float> row, std::size_t label, float grad_scale, float* grad, LossSums& sums) {
    const auto largest = std::max_element(row.begin(), row.end());
    const double total = log_sum_exp(row, *largest);
    sums.loss += total - static_cast<double>(row[label]);
    sums.correct += static_cast<std::size_t>(largest - row.begin()) == label ? 1 : 0;
    sums.samples += 1;
    for (std::size_t c = 0; grad != nullptr && c < row.size(); ++c) {
        const double share = std::exp(static_cast<double>(row[c]) - total) - (c == label ? 1.0 : 0.0);
        grad[c] = static_cast<float>(share * static_cast<double>(grad_scale));
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
    for (const std::int64_t index : batch_indices()) {
        if (index < 0) {
            std::fill_n(out, size, 0.0F);
        } else {
            const std::uint8_t* image = images_.pixels.data() + static_cast<std::size_t>(index) * size;
            for (std::size_t i = 0; i < size; ++i) {
                const std::size_t c = channels == 1 ? 0 : i % channels;
                out[i] = (static_cast<float>(image[i]) / 255.0F - images_.mean[c]) / images_.deviation[c];
            }
        }
        out += size;
    }
}

void CpuStepContext::softmax_cross_entropy(const float* logits, std::int64_t classes, float* grad) {
    const float grad_scale = scalars().grad_scale;
    const auto columns = static_cast<std::size_t>(classes);
    std::size_t row = 0;
    for (const std::int64_t index : batch_indices()) {
        float* grad_row = grad == nullptr ? nullptr : grad + row * columns;
        if (index >= 0) {
            const auto label = static_cast<std::size_t>(images_.labels[static_cast<std::size_t>(index)]);
            add_sample({logits + row * columns, columns}, label, grad_scale, grad_row, sums_);
        } else if (grad_row != nullptr) {
            std::fill_n(grad_row, columns, 0.0F);
        }
        ++row;
    }
}

}  // namespace finch::backend::cpu
