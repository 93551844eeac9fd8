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
      pass_{.height = shape.height,
            .width = shape.width,
            .channels = shape.channels_in,
            .height_out = shape.height_out(),
            .width_out = shape.width_out(),
            .channels_out = shape.channels_out,
            .kernel = shape.kernel,
            .stride = shape.stride,
            .padding_before = shape.padding_before,
            .padding_after = shape.padding_after} {}

void ConvolutionGradient::run(const float* x, const float* y, float* grad_y, float* grad_parameters) const {
    const DirectKernels& own = kernels().direct;
    const std::int64_t x_size = shape_.height * shape_.width * shape_.channels_in;
    const std::int64_t y_size = shape_.height_out() * shape_.width_out() * shape_.channels_out;
    const std::int64_t size = own.sums_floats(pass_);
    const std::int64_t slices = slice_count(shape_.batch, 1);
    AlignedFloats sums(slices * size);
    std::fill_n(sums.data(), slices * size, 0.0F);
    for_slices(shape_.batch, 1, [&](std::size_t slice, std::int64_t begin, std::int64_t end) {
        float* const scratch = workspace(own.scratch_floats(pass_));
        for (std::int64_t n = begin; n < end; ++n) {
            // The derivative is applied while the sample is in the cache. The gradient of x is later computed from the
            // new values of grad_y.
            apply_derivative(shape_.activation, y + n * y_size, grad_y + n * y_size, static_cast<std::size_t>(y_size));
            own.add(pass_, x + n * x_size, grad_y + n * y_size, sums.data() + static_cast<std::int64_t>(slice) * size,
                    scratch);
        }
    });
    for (std::int64_t slice = 1; slice < slices; ++slice) {
        accumulate(sums.data() + slice * size, sums.data(), static_cast<std::size_t>(size));
    }
    own.write(pass_, sums.data(), grad_parameters, grad_parameters + shape_.weights());
}

}  // namespace finch::backend::cpu
