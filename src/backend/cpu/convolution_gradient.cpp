#include "convolution_gradient.hpp"

#include "elementwise.hpp"
#include "slices.hpp"

#include <algorithm>
#include <cstdlib>

namespace finch::backend::cpu {

bool ConvolutionGradient::suits(const ConvolutionShape& shape) noexcept {
    if (shape.groups > 1 || shape.dilation > 1) {
        return false;
    }
    return std::getenv("FINCH_DIRECT") != nullptr;
}

ConvolutionGradient::ConvolutionGradient(const ConvolutionShape& shape)
    : shape_(shape),
      direct_{.height = shape.height,
              .width = shape.width,
              .channels = shape.channels_in,
              .height_out = shape.height_out(),
              .width_out = shape.width_out(),
              .channels_out = shape.channels_out,
              .kernel = shape.kernel,
              .stride = shape.stride,
              .padding_before = shape.padding_before,
              .padding_after = shape.padding_after},
      sums_(kernels().direct.sums_floats(direct_)) {}

void ConvolutionGradient::run(const Pass& pass, const float* x, const float* y, float* grad_y, float* grad_parameters) {
    const DirectKernels& own = kernels().direct;
    const std::int64_t x_size = shape_.height * shape_.width * shape_.channels_in;
    const std::int64_t y_size = shape_.height_out() * shape_.width_out() * shape_.channels_out;
    sums_.add(pass, shape_.batch, [&](std::int64_t begin, std::int64_t end, float* sums) {
        float* const scratch = workspace(own.scratch_floats(direct_));
        for (std::int64_t n = begin; n < end; ++n) {
            // The derivative is applied while the sample is in the cache. The gradient of x is later computed from the
            // new values of grad_y.
            apply_derivative(shape_.activation, y + n * y_size, grad_y + n * y_size, static_cast<std::size_t>(y_size));
            own.add(direct_, x + n * x_size, grad_y + n * y_size, sums, scratch);
        }
    });
    if (pass.is_last_block) {
        own.write(direct_, sums_.total(), grad_parameters, grad_parameters + shape_.weights());
    }
}

}  // namespace finch::backend::cpu
