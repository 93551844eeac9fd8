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

    /// Replaces grad_y with the gradient before the activation. After the last block, writes the gradients of weight
    /// and bias in canonical order.
    void run(const Pass& pass, const float* x, const float* y, float* grad_y, float* grad_parameters);

private:
    ConvolutionShape shape_;
    DirectPass direct_;
    GradientSums sums_;
};

}  // namespace finch::backend::cpu
