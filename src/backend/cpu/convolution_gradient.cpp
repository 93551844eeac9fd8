#include "convolution_gradient.hpp"

#include "elementwise.hpp"
#include "slices.hpp"

#include <algorithm>

namespace finch::backend::cpu {
namespace {

/// The part of the lanes that work if vectors hold `floats` consecutive floats.
double use_of_lanes(std::int64_t floats, std::int64_t lanes) {
    return static_cast<double>(floats) / static_cast<double>((floats + lanes - 1) / lanes * lanes);
}

}  // namespace

bool ConvolutionGradient::suits(const ConvolutionShape& shape) noexcept {
    if (shape.groups > 1 || shape.dilation > 1) {
        return false;
    }
    // The vectors of oneDNN hold outputs. With equal use of the lanes oneDNN is faster with AVX-512 and slower with
    // AVX2; without AVX2 it has no vector kernel for all shapes. The limits were measured for 1 to 128 channels and
    // kernels of 1 to 7 (tools/bench/operations.py).
    const std::int64_t lanes = kernels().lanes;
    const double ratio =
        use_of_lanes(shape.kernel * shape.channels_in, lanes) / use_of_lanes(shape.channels_out, lanes);
    switch (lanes) {
        case 16:
            return ratio >= 1 && (shape.kernel == 1 || shape.channels_out % lanes != 0);
        case 8:
            return ratio >= 0.7;
        default:
            return true;
    }
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
