#pragma once

#include "finch/backend/operation.hpp"

#include "gradient_sums.hpp"
#include "kernels.hpp"

namespace finch::backend::cpu {

/// The gradient of a convolution's weights and bias by Finch's own kernel (DirectKernels).
class ConvolutionGradient {
public:
    /// True if the kernel supports this shape and is faster than oneDNN's kernel.
    [[nodiscard]] static bool suits(const ConvolutionShape& shape) noexcept;

    explicit ConvolutionGradient(const ConvolutionShape& shape);

    /// Replaces grad_y with the gradient before the activation, and writes the gradients of weight and bias in
    /// canonical order. Each thread sums a slice of the samples, and the sums are added in the order of the slices.
    void run(const float* x, const float* y, float* grad_y, float* grad_parameters) const;

private:
    ConvolutionShape shape_;
    DirectPass direct_;
    GradientSums sums_;
};

}  // namespace finch::backend::cpu
