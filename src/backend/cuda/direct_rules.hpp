#pragma once

#include "finch/backend/operation.hpp"

#include <array>
#include <cstdint>

// Which of the direct convolution kernels a shape gets. The numbers are estimates for an H200 (132 multiprocessors),
// from counting instructions and shared-memory accesses; tools/bench/gpu_step.py measures, and corrects them here.
namespace finch::backend::cuda {

/// Forward and the gradient of the input, from so many output pixels (batch · height · width) on.
struct DirectRule {
    std::int64_t from_pixels;
    int pixels;         ///< of a row that one thread computes: 1 or 4
    bool many_outputs;  ///< as many channels in one thread as fit, or few, so that there are more threads
    int rows;           ///< of a band, which one block computes
};
inline constexpr std::array direct_rules{
    DirectRule{0, 1, false, 4},       // 8 images of 28 x 28: 56 blocks of 224 threads
    DirectRule{32'768, 4, false, 7},  // 64 images: 256 blocks
    DirectRule{131'072, 4, true, 14}  // 256 images and more: 512 blocks, twice the products a load
};

/// The gradient of the weights.
struct WeightGradientRule {
    std::int64_t from_pixels;
    int rows;                       ///< of a band
    int blocks_per_multiprocessor;  ///< at most; a block then walks over several bands
};
inline constexpr std::array weight_gradient_rules{WeightGradientRule{0, 4, 2}, WeightGradientRule{32'768, 7, 2},
                                                  WeightGradientRule{131'072, 14, 2}};

/// With one channel in there are few sums and many slices, which want more rows to share.
inline constexpr int rows_of_few_channels = 28;

template <class Rules>
[[nodiscard]] constexpr auto rule_for(const Rules& rules, std::int64_t pixels) {
    auto chosen = rules.front();
    for (const auto& rule : rules) {
        if (pixels >= rule.from_pixels) {
            chosen = rule;
        }
    }
    return chosen;
}

}  // namespace finch::backend::cuda
