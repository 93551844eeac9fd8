#include "convolution_gradient.hpp"

#include "elementwise.hpp"
#include "fetch.hpp"
#include "gradient_vectors.hpp"
#include "library.hpp"

#include <algorithm>
#include <array>
#include <omp.h>

namespace finch::backend::cpu {

#if defined(__x86_64__)
using namespace gradient;

namespace {

/// Returns a bit mask. Bit k is set if element `first_place` + k of the window at output column j is inside the window
/// and inside the image.
std::uint32_t places_inside(const ConvolutionShape& shape, std::int64_t j, std::int64_t first_place) {
    std::uint32_t bits = 0;
    for (std::int64_t k = 0; k < chunk; ++k) {
        const std::int64_t kernel_column = (first_place + k) / shape.channels_in;
        const std::int64_t column = j * shape.stride - shape.padding_before + kernel_column;
        if (kernel_column < shape.kernel && column >= 0 && column < shape.width) {
            bits |= std::uint32_t{1} << k;
        }
    }
    return bits;
}

/// True if rows of this shape are multiplied in pairs. With few rows, pairs are not faster.
bool takes_pairs(const ConvolutionShape& shape) {
    return shape.kernel == 3 && shape.stride == 1 && shape.height_out() >= 6;
}

}  // namespace

/// The combined pairs of rows of one sample, for F(3, 2).
struct ConvolutionGradient::Pairs {
    explicit Pairs(const ConvolutionShape& shape)
        : x(static_cast<std::size_t>((shape.height_out() + 1) / 2 *
                                     (shape.width + shape.padding_before + shape.padding_after) * shape.channels_in)),
          grad_y(static_cast<std::size_t>((shape.height_out() + 1) / 2 * shape.width_out() * shape.channels_out)),
          zeros(static_cast<std::size_t>(
              std::max(shape.width * shape.channels_in, shape.width_out() * shape.channels_out))) {}
    std::vector<float> x;  ///< including the padding on both sides
    std::vector<float> grad_y, zeros;
};

/// Rows of x and rows of the gradient of y that are multiplied with each other.
struct ConvolutionGradient::Rows {
    const float* x;  ///< the first window, which begins in the padding
    const float* grad_y;
    std::int64_t count;
    std::int64_t x_row, grad_row;  ///< floats from one row to the next
    Coming* coming;
};

bool ConvolutionGradient::suits(const ConvolutionShape& shape) noexcept {
    if (!may_use(dnnl::cpu_isa::avx512_core) || shape.groups > 1 || shape.dilation > 1) {
        return false;
    }
    // The rule was measured for 1 to 32 channels and kernels of 1, 2, 3 and 5 (bench_operations). For the accepted
    // shapes this kernel takes 0.2 to 0.9 of oneDNN's time. For pairs of long rows this kernel is faster than oneDNN
    // with any number of output channels.
    const std::int64_t outputs_in_last_vector = shape.channels_out % lanes;
    const bool outputs_leave_lanes_idle = outputs_in_last_vector >= 1 && outputs_in_last_vector <= 11;
    return shape.kernel == 1 || (outputs_leave_lanes_idle && shape.kernel * shape.channels_in > 5) ||
           (takes_pairs(shape) && shape.width_out() >= 26 && shape.channels_in >= 4);
}

ConvolutionGradient::ConvolutionGradient(const ConvolutionShape& shape)
    : shape_(shape),
      pairs_rows_(takes_pairs(shape)),
      kernel_rows_(pairs_rows_ ? 4 : shape.kernel),
      chunks_((shape.kernel * shape.channels_in + chunk - 1) / chunk),
      blocks_((shape.channels_out + static_cast<std::int64_t>(outputs_together) - 1) /
              static_cast<std::int64_t>(outputs_together)) {
    // Pairs of rows are copied together with the padding at their sides, so that every window is inside the copy.
    ConvolutionShape seen = shape;
    if (pairs_rows_) {
        seen.width += shape.padding_before + shape.padding_after;
        seen.padding_before = seen.padding_after = 0;
    }
    for (std::int64_t c = 0; c < chunks_; ++c) {
        for (std::int64_t j = 0; j < shape.width_out(); ++j) {
            inside_.push_back(places_inside(seen, j, c * chunk));
        }
    }
    sums_of_weights_ = kernel_rows_ * shape.channels_out * chunks_ * chunk;
    sums_ = sums_of_weights_ + shape.channels_out;
}

/// Adds the products that belong to one row of the convolution kernel.
void ConvolutionGradient::add_row(const Rows& rows, std::int64_t kernel_row, float* sums) const {
    const std::int64_t stride = chunks_ * chunk;
    for (std::int64_t c = 0; c < chunks_; ++c) {
        const bool both = shape_.kernel * shape_.channels_in - c * chunk > lanes;
        for (std::int64_t b = 0; b < blocks_; ++b) {
            const std::int64_t first = shape_.channels_out * b / blocks_;
            const std::int64_t behind = shape_.channels_out * (b + 1) / blocks_;
            const auto variant = static_cast<std::size_t>(behind - first - 1);
            (both ? two_vectors : one_vector)[variant](
                {.x = rows.x + c * chunk,
                 .grad_y = rows.grad_y + first,
                 .inside = inside_.data() + c * shape_.width_out(),
                 .rows = rows.count,
                 .columns = shape_.width_out(),
                 .x_row = rows.x_row,
                 .x_step = shape_.stride * shape_.channels_in,
                 .grad_row = rows.grad_row,
                 .grad_step = shape_.channels_out,
                 .sums = sums + (kernel_row * shape_.channels_out + first) * stride + c * chunk,
                 .stride_of_sums = stride,
                 .coming = rows.coming});
        }
    }
}

void ConvolutionGradient::add_sample(const float* x, const float* grad_y, float* sums, Coming& coming) const {
    const std::int64_t x_row = shape_.width * shape_.channels_in;
    const std::int64_t grad_row = shape_.width_out() * shape_.channels_out;
    for (std::int64_t a = 0; a < shape_.kernel; ++a) {
        // The rows of y for which row `a` of the kernel is inside the image.
        const std::int64_t above = shape_.padding_before - a;
        const std::int64_t first = above > 0 ? (above + shape_.stride - 1) / shape_.stride : 0;
        const std::int64_t behind =
            std::min(shape_.height_out(), (shape_.height - 1 + above + shape_.stride) / shape_.stride);
        add_row({.x = x + (first * shape_.stride - above) * x_row - shape_.padding_before * shape_.channels_in,
                 .grad_y = grad_y + first * grad_row,
                 .count = behind - first,
                 .x_row = shape_.stride * x_row,
                 .grad_row = grad_row,
                 .coming = &coming},
                a, sums);
    }
}

/// Adds the products of a sample by Winograd's F(3, 2) over the rows. Two rows of y and the four rows of x that they
/// depend on need four rows of products instead of six.
void ConvolutionGradient::add_sample_by_pairs(const float* x, const float* grad_y, float* sums, Coming& coming,
                                              Pairs& pairs) const {
    const std::int64_t row = shape_.width * shape_.channels_in;
    const std::int64_t grad_row = shape_.width_out() * shape_.channels_out;
    const std::int64_t padding = shape_.padding_before * shape_.channels_in;
    const std::int64_t padded_row = (shape_.width + shape_.padding_before + shape_.padding_after) * shape_.channels_in;
    const std::int64_t count = (shape_.height_out() + 1) / 2;
    const auto x_at = [&](std::int64_t i) { return i >= 0 && i < shape_.height ? x + i * row : pairs.zeros.data(); };
    const auto grad_at = [&](std::int64_t i) {
        return i < shape_.height_out() ? grad_y + i * grad_row : pairs.zeros.data();
    };
    struct Combination {
        std::int64_t first, second;
        float sign;
    };
    constexpr std::array<Combination, 4> of_x{{{0, 2, -1}, {1, 2, 1}, {2, 1, -1}, {3, 1, -1}}};
    for (std::int64_t k = 0; k < 4; ++k) {
        for (std::int64_t pair = 0; pair < count; ++pair) {
            const std::int64_t top = 2 * pair - shape_.padding_before;
            const Combination& c = of_x[static_cast<std::size_t>(k)];
            combine(x_at(top + c.first), x_at(top + c.second), c.sign, pairs.x.data() + pair * padded_row + padding,
                    row);
        }
        Rows rows{.x = pairs.x.data(),
                  .grad_y = grad_y,
                  .count = count,
                  .x_row = padded_row,
                  .grad_row = 2 * grad_row,
                  .coming = &coming};
        if (k == 1 || k == 2) {
            for (std::int64_t pair = 0; pair < count; ++pair) {
                combine(grad_at(2 * pair), grad_at(2 * pair + 1), k == 1 ? 1.0F : -1.0F,
                        pairs.grad_y.data() + pair * grad_row, grad_row);
            }
            rows.grad_y = pairs.grad_y.data();
            rows.grad_row = grad_row;
        } else if (k == 3) {
            rows.grad_y = grad_y + grad_row;
            rows.count = shape_.height_out() / 2;
        }
        add_row(rows, k, sums);
    }
}

void ConvolutionGradient::run(const backend::Pass& pass, const float* x, const float* y, float* grad_y,
                              std::vector<float>& sums, float* grad_parameters) const {
    const std::int64_t x_size = shape_.height * shape_.width * shape_.channels_in;
    const std::int64_t y_size = shape_.height_out() * shape_.width_out() * shape_.channels_out;
    const std::int64_t slices = std::min<std::int64_t>(omp_get_max_threads(), shape_.batch);
    const std::int64_t rows =
        (pairs_rows_ ? 2 * (shape_.height_out() + 1) : shape_.kernel * shape_.height_out()) * chunks_ * blocks_;
    if (pass.is_first_block) {
        sums.assign(static_cast<std::size_t>(slices * sums_), 0);
    }
#pragma omp parallel for schedule(static) num_threads(static_cast <int>(slices)) if (slices > 1)
    for (std::int64_t slice = 0; slice < slices; ++slice) {
        Pairs pairs(shape_);
        for (std::int64_t n = shape_.batch * slice / slices; n < shape_.batch * (slice + 1) / slices; ++n) {
            const float* const sample = x + n * x_size;
            float* const grad = grad_y + n * y_size;
            float* const own = sums.data() + slice * sums_;
            // The derivative is applied while the sample is in the cache. The gradient of x is later computed from the
            // new values of grad_y.
            apply_derivative(shape_.activation, y + n * y_size, grad, static_cast<std::size_t>(y_size));
            Coming coming{Ahead(sample + x_size, x_size, rows), Ahead(y + (n + 1) * y_size, y_size, rows),
                          Ahead(grad + y_size, y_size, rows)};
            pairs_rows_ ? add_sample_by_pairs(sample, grad, own, coming, pairs) : add_sample(sample, grad, own, coming);
            add_pixels(grad, shape_.height_out() * shape_.width_out(), shape_.channels_out, own + sums_of_weights_);
        }
    }
    if (pass.is_last_block) {
        write(sums, static_cast<std::size_t>(slices), grad_parameters);
    }
}

void ConvolutionGradient::write(const std::vector<float>& sums, std::size_t slices, float* grad_parameters) const {
    const auto total = [&](std::int64_t place) {
        float sum = 0;
        for (std::size_t slice = 0; slice < slices; ++slice) {
            sum += sums[slice * static_cast<std::size_t>(sums_) + static_cast<std::size_t>(place)];
        }
        return sum;
    };
    const auto of_row = [&](std::int64_t a, std::int64_t place) {
        const auto sum = [&](std::int64_t row) { return total(row * shape_.channels_out * chunks_ * chunk + place); };
        if (!pairs_rows_) {
            return sum(a);
        }
        if (a == 1) {
            return 0.5F * (sum(1) - sum(2));
        }
        return 0.5F * (sum(1) + sum(2)) + sum(a == 0 ? 0 : 3);
    };
    for (std::int64_t o = 0; o < shape_.channels_out; ++o) {
        for (std::int64_t i = 0; i < shape_.channels_in; ++i) {
            for (std::int64_t a = 0; a < shape_.kernel; ++a) {
                for (std::int64_t b = 0; b < shape_.kernel; ++b) {
                    *grad_parameters++ = of_row(a, o * chunks_ * chunk + b * shape_.channels_in + i);
                }
            }
        }
    }
    for (std::int64_t o = 0; o < shape_.channels_out; ++o) {
        *grad_parameters++ = total(sums_of_weights_ + o);
    }
}

#else

bool ConvolutionGradient::suits(const ConvolutionShape&) noexcept {
    return false;
}
ConvolutionGradient::ConvolutionGradient(const ConvolutionShape& shape) : shape_(shape) {}
void ConvolutionGradient::run(const backend::Pass&, const float*, const float*, float*, std::vector<float>&,
                              float*) const {}

#endif

}  // namespace finch::backend::cpu
