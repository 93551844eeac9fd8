#include "loops.hpp"

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

}  // namespace

void softmax_cross_entropy(const float* logits, std::span<const std::int32_t> labels, std::span<const float> weights,
                           std::int64_t classes, float grad_scale, float* grad, LossSums& sums) {
    for (std::size_t n = 0; n < labels.size(); ++n) {
        const std::span row(logits + static_cast<std::ptrdiff_t>(n) * classes, static_cast<std::size_t>(classes));
        float* grad_row = grad == nullptr ? nullptr : grad + static_cast<std::ptrdiff_t>(n) * classes;
        if (weights[n] == 0.0F) {
            if (grad_row != nullptr) {
                std::fill_n(grad_row, classes, 0.0F);
            }
            continue;
        }
        const auto largest = std::max_element(row.begin(), row.end());
        const double total = log_sum_exp(row, *largest);
        const auto label = static_cast<std::size_t>(labels[n]);
        sums.loss += (total - static_cast<double>(row[label])) * static_cast<double>(weights[n]);
        sums.correct += static_cast<std::size_t>(largest - row.begin()) == label ? 1 : 0;
        sums.samples += 1;
        for (std::size_t c = 0; grad_row != nullptr && c < row.size(); ++c) {
            const double share = std::exp(static_cast<double>(row[c]) - total) - (c == label ? 1.0 : 0.0);
            grad_row[c] = static_cast<float>(share * static_cast<double>(weights[n]) * static_cast<double>(grad_scale));
        }
    }
}

}  // namespace finch::backend::cpu
