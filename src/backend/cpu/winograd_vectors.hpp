#pragma once

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>
#include <utility>

/// The AVX-512 loops of WinogradConvolution. A vector holds tiles or pixels.
namespace finch::backend::cpu::winograd {

constexpr std::int64_t lanes = 16;             ///< floats of a vector
constexpr std::int64_t together = 2 * lanes;   ///< tiles of a block
constexpr std::int64_t least_count = 4;        ///< minimum of tiles for a part of a vector
constexpr std::int64_t side = 4;               ///< rows and columns of a tile's inputs
constexpr std::int64_t places = side * side;   ///< elements of a transformed tile
constexpr std::int64_t everywhere = side + 1;  ///< the element with weight 1 in each output
constexpr std::int64_t outputs_together = 12;  ///< channels; with two sums each, all sums fit in the 32 registers
constexpr std::int64_t channels_together = 4;  ///< converted together between NHWC and planes

/// Floats of a channel's transformed tiles, (places, together), plus one cache line. Without the extra cache line, the
/// distances between channels would be powers of two, and all channels would share one set of the cache.
constexpr std::int64_t transformed = places * together + lanes;

__mmask16 first_lanes(std::int64_t count) {
    return static_cast<__mmask16>((std::uint32_t{1} << count) - 1);
}

__attribute__((target("avx512f"), always_inline)) inline __m512 low_pairs(const __m512& a, const __m512& b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
__attribute__((target("avx512f"), always_inline)) inline __m512 high_pairs(const __m512& a, const __m512& b) {
    return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}

/// Converts four vectors of 4 × (4 channels of a pixel) to four vectors of 16 pixels of one channel, or back. Each
/// quarter is transposed separately.
__attribute__((target("avx512f"), always_inline)) inline void turn(__m512 (&v)[4]) {
    const __m512 a = low_pairs(v[0], v[2]);
    const __m512 b = low_pairs(v[1], v[3]);
    const __m512 c = high_pairs(v[0], v[2]);
    const __m512 d = high_pairs(v[1], v[3]);
    v[0] = low_pairs(a, b);
    v[1] = high_pairs(a, b);
    v[2] = low_pairs(c, d);
    v[3] = high_pairs(c, d);
}

/// Copies four channels of `count` pixels (up to 16) to four planes. Neighbouring pixels are `step` floats apart,
/// neighbouring planes are `plane` floats apart. If `may_read` is true, the function reads all 16 pixels, otherwise
/// only `count` pixels.
__attribute__((target("avx512f"))) void gather(const float* from, std::int64_t step, std::int64_t count, bool may_read,
                                               float* to, std::int64_t plane) {
    std::array<float, lanes * channels_together> copy{};
    if (!may_read) {
        for (std::int64_t p = 0; p < count; ++p) {
            std::copy_n(from + p * step, channels_together, copy.data() + p * channels_together);
        }
        from = copy.data();
        step = channels_together;
    }
    const float* const quarters[4] = {from, from + 4 * step, from + 8 * step, from + 12 * step};
    __m512 v[4];
#pragma GCC unroll 4
    for (std::int64_t p = 0; p < 4; ++p) {
        v[p] = _mm512_castps128_ps512(_mm_loadu_ps(quarters[0] + p * step));
        v[p] = _mm512_insertf32x4(v[p], _mm_loadu_ps(quarters[1] + p * step), 1);
        v[p] = _mm512_insertf32x4(v[p], _mm_loadu_ps(quarters[2] + p * step), 2);
        v[p] = _mm512_insertf32x4(v[p], _mm_loadu_ps(quarters[3] + p * step), 3);
    }
    turn(v);
#pragma GCC unroll 4
    for (std::int64_t c = 0; c < 4; ++c) {
        _mm512_mask_storeu_ps(to + c * plane, first_lanes(count), v[c]);
    }
}

/// Loads a vector and keeps it in a register. Without this function, the compiler would load the vector again for each
/// use.
__attribute__((target("avx512f"), always_inline)) inline __m512 load(const float* from) {
    __m512 v = _mm512_loadu_ps(from);
    asm("" : "+v"(v));
    return v;
}

/// Computes Bᵀ d B of up to 16 tiles for each channel. `d` is the first of four rows of the first plane. Each row has
/// `odd` columns with even numbers, followed by `odd` columns with odd numbers.
__attribute__((target("avx512f"))) void transform_input(const float* d, std::int64_t channels, std::int64_t plane,
                                                        std::int64_t odd, __mmask16 mask, float* to) {
    for (std::int64_t channel = 0; channel < channels; ++channel, d += plane, to += transformed) {
        __m512 c[side][side];
#pragma GCC unroll 4
        for (std::int64_t r = 0; r < side; ++r) {
            const float* const even_columns = d + 2 * r * odd;
            const float* const odd_columns = d + (2 * r + 1) * odd;
            const __m512 d0 = _mm512_loadu_ps(even_columns);
            const __m512 d1 = load(odd_columns);
            const __m512 d2 = load(even_columns + 1);
            const __m512 d3 = _mm512_loadu_ps(odd_columns + 1);
            c[r][0] = d0 - d2;
            c[r][1] = d1 + d2;
            c[r][2] = d2 - d1;
            c[r][3] = d1 - d3;
        }
#pragma GCC unroll 4
        for (std::int64_t s = 0; s < side; ++s) {
            float* const column = to + s * together;
            _mm512_mask_storeu_ps(column, mask, c[0][s] - c[2][s]);
            _mm512_mask_storeu_ps(column + side * together, mask, c[1][s] + c[2][s]);
            _mm512_mask_storeu_ps(column + 2 * side * together, mask, c[2][s] - c[1][s]);
            _mm512_mask_storeu_ps(column + 3 * side * together, mask, c[1][s] - c[3][s]);
        }
    }
}

/// Computes to[output] = bias[output] + Σ weights[channel][output] · from[channel] for a block of tiles at one place.
/// `bias` may be null.
template <std::size_t outputs>
__attribute__((target("avx512f"))) void multiply(const float* weights, const float* from, std::int64_t channels,
                                                 const float* bias, float* to) {
    __m512 sums[2 * outputs];
#pragma GCC unroll 24
    for (std::size_t s = 0; s < 2 * outputs; ++s) {
        sums[s] = bias != nullptr ? _mm512_set1_ps(bias[s / 2]) : _mm512_setzero_ps();
    }
    for (std::int64_t c = 0; c < channels; ++c, weights += outputs, from += transformed) {
        const __m512 low = _mm512_load_ps(from);
        const __m512 high = _mm512_load_ps(from + lanes);
#pragma GCC unroll 12
        for (std::size_t o = 0; o < outputs; ++o) {
            const __m512 weight = _mm512_set1_ps(weights[o]);
            sums[2 * o] = _mm512_fmadd_ps(weight, low, sums[2 * o]);
            sums[2 * o + 1] = _mm512_fmadd_ps(weight, high, sums[2 * o + 1]);
        }
    }
#pragma GCC unroll 24
    for (std::size_t s = 0; s < 2 * outputs; ++s) {
        _mm512_store_ps(to + transformed * static_cast<std::int64_t>(s / 2) + lanes * static_cast<std::int64_t>(s % 2),
                        sums[s]);
    }
}

using Multiply = void (*)(const float*, const float*, std::int64_t, const float*, float*);

template <std::size_t... less_one>
constexpr std::array<Multiply, sizeof...(less_one)> variants(std::index_sequence<less_one...>) {
    return {&multiply<less_one + 1>...};
}
constexpr auto multiply_of = variants(std::make_index_sequence<outputs_together>());

/// Computes Aᵀ m A of 16 tiles of one channel: the outputs at 2 × 2 pixels.
__attribute__((target("avx512f"), always_inline)) inline void transform_output(const float* m, __m512 (&to)[4]) {
    constexpr std::int64_t step = together;
    __m512 upper[side], lower[side];
#pragma GCC unroll 4
    for (std::int64_t s = 0; s < side; ++s, m += step) {
        const __m512 m1 = load(m + side * step);
        const __m512 m2 = load(m + 2 * side * step);
        upper[s] = _mm512_load_ps(m) + (m1 + m2);
        lower[s] = (m1 - m2) - _mm512_load_ps(m + 3 * side * step);
    }
    to[0] = upper[0] + (upper[1] + upper[2]);
    to[1] = (upper[1] - upper[2]) - upper[3];
    to[2] = lower[0] + (lower[1] + lower[2]);
    to[3] = (lower[1] - lower[2]) - lower[3];
}

/// Writes four channels of one pixel of each of 16 tiles. `to_places` are the offsets of the tiles in `to`. The bits in
/// `is_written` select the tiles.
__attribute__((target("avx512f"), always_inline)) inline void scatter(__m512 (&v)[4], const std::int64_t* to_places,
                                                                      std::uint32_t is_written, float* to) {
    turn(v);
    const auto put = [&](std::int64_t p, __m128 pixel) { _mm_storeu_ps(to + to_places[p], pixel); };
    const auto put_quarter = [&](std::int64_t p, __m128 v0, __m128 v1, __m128 v2, __m128 v3) {
        const std::uint32_t bits = is_written >> p;
        if ((bits & 15) == 15) {
            put(p, v0);
            put(p + 1, v1);
            put(p + 2, v2);
            put(p + 3, v3);
            return;
        }
        if ((bits & 1) != 0) {
            put(p, v0);
        }
        if ((bits & 2) != 0) {
            put(p + 1, v1);
        }
        if ((bits & 4) != 0) {
            put(p + 2, v2);
        }
        if ((bits & 8) != 0) {
            put(p + 3, v3);
        }
    };
#define Q(k, ...)                                                                                                   \
    put_quarter(4 * k, __builtin_shufflevector(v[0], v[0], __VA_ARGS__),                                            \
                __builtin_shufflevector(v[1], v[1], __VA_ARGS__), __builtin_shufflevector(v[2], v[2], __VA_ARGS__), \
                __builtin_shufflevector(v[3], v[3], __VA_ARGS__))
    Q(0, 0, 1, 2, 3);
    Q(1, 4, 5, 6, 7);
    Q(2, 8, 9, 10, 11);
    Q(3, 12, 13, 14, 15);
}

}  // namespace finch::backend::cpu::winograd

#endif
