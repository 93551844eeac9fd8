#pragma once

#if defined(__x86_64__)

#include "fetch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>
#include <utility>

/// The AVX-512 loops of ConvolutionGradient. A vector holds the values of x under one row of the kernel.
namespace finch::backend::cpu::gradient {

constexpr std::int64_t lanes = 16;            ///< floats of a vector
constexpr std::int64_t chunk = 2 * lanes;     ///< floats of a window that are processed together
constexpr std::size_t outputs_together = 12;  ///< with two sums each, all sums fit in the 32 registers

/// The next sample, which is prefetched: x, y and the gradient of y.
using Coming = std::array<Ahead, 3>;

/// The arguments of one pass over a sample for one row of the kernel, one chunk of its window and one block of outputs.
struct Pass {
    const float* x;               ///< start of the chunk in the first window
    const float* grad_y;          ///< gradients of the first pixel, from the block's first output on
    const std::uint32_t* inside;  ///< (columns): bits of the chunk's elements inside the image
    std::int64_t rows, columns;   ///< of pixels that are summed
    std::int64_t x_row, x_step;   ///< floats from one row, or one pixel, to the next
    std::int64_t grad_row, grad_step;
    float* sums;  ///< (outputs, `stride_of_sums`): the pass adds to these
    std::int64_t stride_of_sums;
    Coming* coming;  ///< prefetched row by row
};

/// Adds grad_y[output] · x[window element] over all pixels of the sample. Every loop over `sums` is unrolled; otherwise
/// the sums would not stay in registers.
template <std::size_t outputs, std::size_t vectors>
__attribute__((target("avx512f"))) void add_products(const Pass& pass) {
    __m512 sums[outputs * vectors];
#pragma GCC unroll 24
    for (std::size_t s = 0; s < outputs * vectors; ++s) {
        sums[s] = _mm512_setzero_ps();
    }
    for (std::int64_t i = 0; i < pass.rows; ++i) {
        for (Ahead& ahead : *pass.coming) {
            fetch(ahead);
        }
        const float* window = pass.x + i * pass.x_row;
        const float* grad = pass.grad_y + i * pass.grad_row;
        for (std::int64_t j = 0; j < pass.columns; ++j, window += pass.x_step, grad += pass.grad_step) {
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

using AddProducts = void (*)(const Pass&);

/// Returns the instances of add_products() for 1 to `outputs_together` outputs.
template <std::size_t vectors, std::size_t... less_one>
constexpr std::array<AddProducts, sizeof...(less_one)> variants(std::index_sequence<less_one...>) {
    return {&add_products<less_one + 1, vectors>...};
}
constexpr auto one_vector = variants<1>(std::make_index_sequence<outputs_together>());
constexpr auto two_vectors = variants<2>(std::make_index_sequence<outputs_together>());

/// Adds the gradients of all pixels to `sums` (channels).
__attribute__((target("avx512f"))) void add_pixels(const float* grad_y, std::int64_t pixels, std::int64_t channels,
                                                   float* sums) {
    constexpr std::size_t chains = 4;  // so that an addition need not wait for the previous one
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

/// Computes to = a + sign · b.
__attribute__((target("avx512f"))) void combine(const float* a, const float* b, float sign, float* to,
                                                std::int64_t count) {
    const __m512 factor = _mm512_set1_ps(sign);
    for (std::int64_t i = 0; i < count; i += lanes) {
        const auto mask = static_cast<__mmask16>(count - i >= lanes ? 0xFFFF : (1 << (count - i)) - 1);
        const __m512 sum =
            _mm512_fmadd_ps(factor, _mm512_maskz_loadu_ps(mask, b + i), _mm512_maskz_loadu_ps(mask, a + i));
        _mm512_mask_storeu_ps(to + i, mask, sum);
    }
}

}  // namespace finch::backend::cpu::gradient

#endif
