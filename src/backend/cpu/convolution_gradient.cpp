#include "convolution_gradient.hpp"

#include "elementwise.hpp"
#include "library.hpp"

#include <algorithm>
#include <array>
#include <omp.h>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace finch::backend::cpu {

#if defined(__x86_64__)
namespace {

constexpr std::int64_t lanes = 16;            ///< floats of a vector
constexpr std::int64_t chunk = 2 * lanes;     ///< floats of a window that are treated together
constexpr std::size_t outputs_together = 12;  ///< two sums each, so that all stay in the 32 registers

/// One pass over a sample: one row of the kernel, one chunk of its window, one block of outputs.
struct Pass {
    const float* x;               ///< the sample
    const float* grad_y;          ///< the sample, from the block's first output on
    const std::uint32_t* inside;  ///< (width_out) places of the chunk inside the image
    std::int64_t kernel_row;
    std::int64_t first_place;  ///< where the chunk begins in the window, in floats
    float* sums;               ///< (outputs, `stride_of_sums`): what the pass adds to
    std::int64_t stride_of_sums;
};

/// Adds grad_y[output] · x[place of the window], over all pixels of the sample. Every loop over `sums` is unrolled, or
/// they would not stay in registers.
template <std::size_t outputs, std::size_t vectors>
__attribute__((target("avx512f"))) void add_products(const ConvolutionShape& shape, const Pass& pass) {
    const std::int64_t columns = shape.width_out();
    const std::int64_t window_step = shape.stride * shape.channels_in;
    const std::int64_t grad_step = shape.channels_out;
    __m512 sums[outputs * vectors];
#pragma GCC unroll 24
    for (std::size_t s = 0; s < outputs * vectors; ++s) {
        sums[s] = _mm512_setzero_ps();
    }
    for (std::int64_t i = 0; i < shape.height_out(); ++i) {
        const std::int64_t row = i * shape.stride - shape.padding_before + pass.kernel_row;
        if (row < 0 || row >= shape.height) {
            continue;
        }
        const float* window =
            pass.x + (row * shape.width - shape.padding_before) * shape.channels_in + pass.first_place;
        const float* grad = pass.grad_y + i * columns * grad_step;
        for (std::int64_t j = 0; j < columns; ++j, window += window_step, grad += grad_step) {
            __m512 seen[vectors];
#pragma GCC unroll 2
            for (std::size_t v = 0; v < vectors; ++v) {
                seen[v] =
                    _mm512_maskz_loadu_ps(static_cast<__mmask16>(pass.inside[j] >> (lanes * v)), window + lanes * v);
            }
#pragma GCC unroll 24
            for (std::size_t s = 0; s < outputs * vectors; ++s) {
                sums[s] = _mm512_fmadd_ps(_mm512_set1_ps(grad[s / vectors]), seen[s % vectors], sums[s]);
            }
        }
    }
#pragma GCC unroll 24
    for (std::size_t s = 0; s < outputs * vectors; ++s) {
        float* to = pass.sums + static_cast<std::int64_t>(s / vectors) * pass.stride_of_sums + lanes * (s % vectors);
        _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), sums[s]));
    }
}

using AddProducts = void (*)(const ConvolutionShape&, const Pass&);

/// add_products for 1 … outputs_together outputs.
template <std::size_t vectors, std::size_t... less_one>
constexpr std::array<AddProducts, sizeof...(less_one)> variants(std::index_sequence<less_one...>) {
    return {&add_products<less_one + 1, vectors>...};
}
constexpr auto one_vector = variants<1>(std::make_index_sequence<outputs_together>());
constexpr auto two_vectors = variants<2>(std::make_index_sequence<outputs_together>());

/// Adds the gradients of all pixels to `sums` (channels).
__attribute__((target("avx512f"))) void add_pixels(const float* grad_y, std::int64_t pixels, std::int64_t channels,
                                                   float* sums) {
    constexpr std::size_t chains = 4;  // so that an addition need not wait for the one before
    for (std::int64_t c = 0; c < channels; c += lanes) {
        const auto mask = static_cast<__mmask16>(channels - c >= lanes ? 0xFFFF : (1 << (channels - c)) - 1);
        __m512 partial[chains] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
        for (std::int64_t p = 0; p < pixels; p += chains) {
            for (std::size_t k = 0; k < chains; ++k) {
                const std::int64_t pixel = p + static_cast<std::int64_t>(k);
                partial[k] = _mm512_add_ps(partial[k], _mm512_maskz_loadu_ps(pixel < pixels ? mask : __mmask16{0},
                                                                             grad_y + pixel * channels + c));
            }
        }
        const __m512 all = _mm512_add_ps(_mm512_add_ps(partial[0], partial[1]), _mm512_add_ps(partial[2], partial[3]));
        _mm512_mask_storeu_ps(sums + c, mask, _mm512_add_ps(_mm512_maskz_loadu_ps(mask, sums + c), all));
    }
}

/// Bit k says whether place `first_place` + k of the window at output column j lies in the image and in the window.
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

}  // namespace

bool ConvolutionGradient::suits(const ConvolutionShape& shape) noexcept {
    if (!may_use(dnnl::cpu_isa::avx512_core) || shape.groups > 1 || shape.dilation > 1) {
        return false;
    }
    // Measured for 1 to 32 channels and kernels of 1, 2, 3 and 5: there it takes 0.2 to 0.9 of oneDNN's time.
    const std::int64_t outputs_in_last_vector = shape.channels_out % lanes;
    const bool outputs_leave_lanes_idle = outputs_in_last_vector >= 1 && outputs_in_last_vector <= 11;
    return shape.kernel == 1 || (outputs_leave_lanes_idle && shape.kernel * shape.channels_in > 5);
}

ConvolutionGradient::ConvolutionGradient(const ConvolutionShape& shape)
    : shape_(shape), chunks_((shape.kernel * shape.channels_in + chunk - 1) / chunk) {
    for (std::int64_t c = 0; c < chunks_; ++c) {
        for (std::int64_t j = 0; j < shape.width_out(); ++j) {
            inside_.push_back(places_inside(shape, j, c * chunk));
        }
    }
    sums_of_weights_ = shape.kernel * shape.channels_out * chunks_ * chunk;
    sums_ = sums_of_weights_ + shape.channels_out;
}

void ConvolutionGradient::add_sample(const float* x, const float* grad_y, float* sums) const {
    const std::int64_t blocks = (shape_.channels_out + static_cast<std::int64_t>(outputs_together) - 1) /
                                static_cast<std::int64_t>(outputs_together);
    for (std::int64_t a = 0; a < shape_.kernel; ++a) {
        for (std::int64_t c = 0; c < chunks_; ++c) {
            const bool both = shape_.kernel * shape_.channels_in - c * chunk > lanes;
            for (std::int64_t b = 0; b < blocks; ++b) {
                const std::int64_t first = shape_.channels_out * b / blocks;
                const std::int64_t behind = shape_.channels_out * (b + 1) / blocks;
                const auto variant = static_cast<std::size_t>(behind - first - 1);
                const std::int64_t stride = chunks_ * chunk;
                (both ? two_vectors : one_vector)[variant](
                    shape_, {.x = x,
                             .grad_y = grad_y + first,
                             .inside = inside_.data() + c * shape_.width_out(),
                             .kernel_row = a,
                             .first_place = c * chunk,
                             .sums = sums + (a * shape_.channels_out + first) * stride + c * chunk,
                             .stride_of_sums = stride});
            }
        }
    }
    add_pixels(grad_y, shape_.height_out() * shape_.width_out(), shape_.channels_out, sums + sums_of_weights_);
}

void ConvolutionGradient::run(const float* x, const float* y, float* grad_y, float* grad_parameters) const {
    const std::int64_t x_size = shape_.height * shape_.width * shape_.channels_in;
    const std::int64_t y_size = shape_.height_out() * shape_.width_out() * shape_.channels_out;
    const std::int64_t slices = std::min<std::int64_t>(omp_get_max_threads(), shape_.batch);
    std::vector<float> sums(static_cast<std::size_t>(slices * sums_));
#pragma omp parallel for schedule(static) num_threads(static_cast <int>(slices)) if (slices > 1)
    for (std::int64_t slice = 0; slice < slices; ++slice) {
        for (std::int64_t n = shape_.batch * slice / slices; n < shape_.batch * (slice + 1) / slices; ++n) {
            // While the sample is in the cache; the gradient of x reads what this leaves behind.
            apply_derivative(shape_.activation, y + n * y_size, grad_y + n * y_size, static_cast<std::size_t>(y_size));
            add_sample(x + n * x_size, grad_y + n * y_size, sums.data() + slice * sums_);
        }
    }
    write(sums, static_cast<std::size_t>(slices), grad_parameters);
}

void ConvolutionGradient::write(const std::vector<float>& sums, std::size_t slices, float* grad_parameters) const {
    const auto total = [&](std::int64_t place) {
        float sum = 0;
        for (std::size_t slice = 0; slice < slices; ++slice) {
            sum += sums[slice * static_cast<std::size_t>(sums_) + static_cast<std::size_t>(place)];
        }
        return sum;
    };
    for (std::int64_t o = 0; o < shape_.channels_out; ++o) {
        for (std::int64_t i = 0; i < shape_.channels_in; ++i) {
            for (std::int64_t a = 0; a < shape_.kernel; ++a) {
                for (std::int64_t b = 0; b < shape_.kernel; ++b) {
                    *grad_parameters++ =
                        total((a * shape_.channels_out + o) * chunks_ * chunk + b * shape_.channels_in + i);
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
void ConvolutionGradient::run(const float*, const float*, float*, float*) const {}

#endif

}  // namespace finch::backend::cpu
