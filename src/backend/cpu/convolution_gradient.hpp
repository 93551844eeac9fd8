#pragma once

#include "finch/backend/operation.hpp"

#include "fetch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace finch::backend::cpu {

/// The gradients of a convolution's parameters on AVX-512, for layers with few channels.
///
/// The vectors of oneDNN hold output channels, so with 10 channels only 10 of 16 lanes work. In this class a vector
/// holds the values of x under one row of the kernel. These kernel · channels_in values are contiguous in NHWC (30 of
/// 32 lanes for 3 · 10). The values are multiplied with broadcast gradients of y. A block of outputs keeps its sums in
/// registers over a whole sample.
/// For a 3 × 3 kernel with stride 1, rows are processed in pairs by F(3, 2) along the columns (arXiv 1509.09308). Two
/// rows of the gradient of y and the four matching rows of x are combined. Four rows of products then suffice instead
/// of six.
class ConvolutionGradient {
public:
    /// True if Finch's kernel runs on this processor and is faster than oneDNN's kernel for this shape. The environment
    /// variable DNNL_MAX_CPU_ISA also limits Finch's own kernels.
    [[nodiscard]] static bool suits(const ConvolutionShape& shape) noexcept;

    explicit ConvolutionGradient(const ConvolutionShape& shape);

    /// Replaces `grad_y`, the gradient after the activation, with the gradient before the activation. Adds the
    /// gradients of the parameters to `sums`, which the first block clears. The last block writes the total to
    /// `grad_parameters` (canonical order). While one sample is processed, the next one is prefetched. The assignment
    /// of samples to threads and the order of the sums are fixed.
    void run(const Pass& pass, const float* x, const float* y, float* grad_y, std::vector<float>& sums,
             float* grad_parameters) const;

private:
    struct Rows;
    struct Pairs;

    void add_row(const Rows& rows, std::int64_t kernel_row, float* sums) const;
    void add_sample(const float* x, const float* grad_y, float* sums, std::array<Ahead, 3>& coming) const;
    void add_sample_by_pairs(const float* x, const float* grad_y, float* sums, std::array<Ahead, 3>& coming,
                             Pairs& pairs) const;
    void write(const std::vector<float>& sums, std::size_t slices, float* grad_parameters) const;

    ConvolutionShape shape_;
    bool pairs_rows_ = false;
    std::int64_t kernel_rows_ = 1;       ///< or the rows of products that replace them
    std::int64_t chunks_ = 1;            ///< chunks of 32 floats in a window (one row of the kernel)
    std::int64_t blocks_ = 1;            ///< blocks of output channels
    std::vector<std::uint32_t> inside_;  ///< (chunks, width_out): bits of the window elements inside the image
    std::int64_t sums_of_weights_ = 0;   ///< floats: kernel rows · channels_out · chunks · 32
    std::int64_t sums_ = 0;              ///< sums_of_weights_ plus the sums of the bias
};

}  // namespace finch::backend::cpu
