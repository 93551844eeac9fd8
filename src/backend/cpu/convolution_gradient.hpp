#pragma once

#include "finch/backend/operation.hpp"

#include "fetch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace finch::backend::cpu {

/// The gradients of a convolution's parameters on AVX-512, for layers of few channels.
///
/// oneDNN lays output channels along its vectors, so that 10 of 16 places work. Here a vector holds what one row of the
/// kernel sees of x: kernel · channels_in values that lie together in NHWC (30 of 32 places for 3 · 10). The gradients
/// of y are broadcast to them, and a block of outputs keeps its sums in registers over a whole sample.
/// With a kernel of 3 × 3 and a stride of 1 the rows go in pairs, F(3, 2) along the columns (arXiv 1509.09308): the
/// four rows of x that two rows of y see, and those two, are combined so that four rows of products do in place of six.
class ConvolutionGradient {
public:
    /// Whether this processor can do it, and does it faster than oneDNN for such a shape. What oneDNN's own
    /// DNNL_MAX_CPU_ISA forbids is not done here either.
    [[nodiscard]] static bool suits(const ConvolutionShape& shape) noexcept;

    explicit ConvolutionGradient(const ConvolutionShape& shape);

    /// `grad_y`, the gradient behind the activation, becomes that before it; `grad_parameters` (canonical) is written.
    /// While a sample is treated the next one is fetched. Samples are dealt out to the threads in a fixed way, and
    /// their sums are added in a fixed order.
    void run(const float* x, const float* y, float* grad_y, float* grad_parameters) const;

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
    std::int64_t kernel_rows_ = 1;       ///< or the rows of products that stand for them
    std::int64_t chunks_ = 1;            ///< of 32 floats, that a window (one row of the kernel) takes
    std::int64_t blocks_ = 1;            ///< of output channels
    std::vector<std::uint32_t> inside_;  ///< (chunks, width_out): which places of the window lie inside the image
    std::int64_t sums_of_weights_ = 0;   ///< floats: kernel rows · channels_out · chunks · 32
    std::int64_t sums_ = 0;              ///< with those of the bias behind
};

}  // namespace finch::backend::cpu
