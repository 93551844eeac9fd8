#include "winograd.hpp"

#include "elementwise.hpp"
#include "fetch.hpp"
#include "library.hpp"
#include "slices.hpp"

#include <algorithm>
#include <array>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace finch::backend::cpu {

#if defined(__x86_64__)
namespace {

constexpr std::int64_t lanes = 16;             ///< floats of a vector
constexpr std::int64_t together = 2 * lanes;   ///< tiles of a block
constexpr std::int64_t side = 4;               ///< of a tile's inputs
constexpr std::int64_t places = side * side;   ///< of a transformed tile
constexpr std::int64_t everywhere = side + 1;  ///< the place that counts once in each output
constexpr std::int64_t outputs_together = 12;  ///< channels, two sums each, so that all stay in the 32 registers
constexpr std::int64_t channels_together = 4;  ///< that are turned between NHWC and planes at once

/// Floats of a channel's transformed tiles, (places, together); a line more than they take, as powers of two would meet
/// in one set of the cache.
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

/// Of four vectors with 4 × (4 channels of a pixel), four with 16 pixels of a channel, or back: each quarter is
/// transposed by itself.
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

/// Four channels of `count` pixels, up to 16, that lie `step` floats apart, to four planes that do `plane` floats.
/// Where `may_read` 16 pixels it does.
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

/// In a register from now on: left to itself, the compiler loads it again for each use.
__attribute__((target("avx512f"), always_inline)) inline __m512 load(const float* from) {
    __m512 v = _mm512_loadu_ps(from);
    asm("" : "+v"(v));
    return v;
}

/// Bᵀ d B of up to 16 tiles of each channel: `d` is the first of four rows of the first plane, each of `odd` even
/// columns and `odd` odd ones.
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

/// to[output] = bias[output] + Σ weights[channel][output] · from[channel], of a block of tiles at one place; `bias` may
/// be null.
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

/// Aᵀ m A of 16 tiles of a channel: its outputs at 2 × 2 pixels.
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

/// Four channels of 16 tiles at one of their pixels, to those places of `to` that `is_written` names.
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

struct alignas(64) Line {
    float values[lanes];
};

std::vector<Line> lines(std::int64_t floats) {
    return std::vector<Line>(static_cast<std::size_t>((floats + lanes - 1) / lanes));
}

/// The parts of `channels` that are multiplied at once: [first, behind) of part b of `blocks`.
std::int64_t blocks_of(std::int64_t channels) {
    return (channels + outputs_together - 1) / outputs_together;
}

}  // namespace

/// What a thread works with.
struct WinogradConvolution::Memory {
    std::vector<Line> planes, inputs, products;
};

bool WinogradConvolution::suits(const ConvolutionShape& shape) noexcept {
    if (!may_use(dnnl::cpu_isa::avx512_core) || shape.groups > 1 || shape.dilation > 1 || shape.kernel != 3 ||
        shape.stride != 1 || shape.padding_before > 2 || shape.padding_after > 2) {
        return false;
    }
    return shape.channels_in >= channels_together && shape.channels_out >= channels_together;
}

WinogradConvolution::WinogradConvolution(const ConvolutionShape& shape, Direction direction)
    : direction_(direction),
      activation_(direction == Direction::forward ? shape.activation : Activation::none),
      batch_(shape.batch),
      height_(shape.height),
      width_(shape.width),
      channels_(shape.channels_in),
      height_out_(shape.height_out()),
      width_out_(shape.width_out()),
      channels_out_(shape.channels_out),
      padding_(shape.padding_before) {
    if (direction == Direction::to_input_gradient) {
        std::swap(height_, height_out_);
        std::swap(width_, width_out_);
        std::swap(channels_, channels_out_);
        padding_ = 2 - padding_;
    }
    tile_rows_ = (height_out_ + 1) / 2;
    tile_columns_ = (width_out_ + 1) / 2;
    group_ = std::max<std::int64_t>(1, together / (tile_rows_ * tile_columns_));
    row_ = 2 * (tile_columns_ + 1);
    plane_ = group_ * 2 * (tile_rows_ + 1) * row_;
    cut_blocks();
}

void WinogradConvolution::cut_blocks() {
    std::int64_t place = together;
    for (std::int64_t n = 0; n < group_; ++n) {
        for (std::int64_t row = 0; row < tile_rows_; ++row) {
            for (std::int64_t column = 0; column < tile_columns_;) {
                const std::int64_t count = std::min(lanes, tile_columns_ - column);
                if (place % lanes + count > lanes) {
                    place = (place / lanes + 1) * lanes;
                }
                if (place + count > together) {
                    blocks_.push_back({.segments = {},
                                       .places = std::vector<std::int64_t>(together),
                                       .is_written = std::vector<std::uint32_t>(4)});
                    place = 0;
                }
                Block& block = blocks_.back();
                block.segments.push_back({n, row, column, count, place});
                for (std::int64_t tile = 0; tile < count; ++tile, ++place, ++column) {
                    block.places[static_cast<std::size_t>(place)] =
                        ((n * height_out_ + 2 * row) * width_out_ + 2 * column) * channels_out_;
                    for (std::int64_t pixel = 0; pixel < 4; ++pixel) {
                        const bool is_there = 2 * row + pixel / 2 < height_out_ && 2 * column + pixel % 2 < width_out_;
                        block.is_written[static_cast<std::size_t>(pixel)] |= std::uint32_t{is_there} << place;
                    }
                }
            }
        }
    }
}

std::size_t WinogradConvolution::packed_weights() const noexcept {
    return static_cast<std::size_t>(places * channels_ * channels_out_);
}

/// G g Gᵀ of each kernel, as (block of outputs, place, input, output of the block).
void WinogradConvolution::pack(const float* weights, float* packed) const {
    const bool is_forward = direction_ == Direction::forward;
    const std::int64_t blocks = blocks_of(channels_out_);
    for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t first = channels_out_ * b / blocks;
        const std::int64_t outputs = channels_out_ * (b + 1) / blocks - first;
        for (std::int64_t i = 0; i < channels_; ++i) {
            for (std::int64_t o = 0; o < outputs; ++o) {
                const float* g =
                    weights + 9 * (is_forward ? (first + o) * channels_ + i : i * channels_out_ + first + o);
                const auto at = [&](std::int64_t r, std::int64_t s) {
                    return is_forward ? g[3 * r + s] : g[8 - 3 * r - s];
                };
                float rows[side][3];
                for (std::int64_t s = 0; s < 3; ++s) {
                    rows[0][s] = at(0, s);
                    rows[1][s] = 0.5F * (at(0, s) + at(1, s) + at(2, s));
                    rows[2][s] = 0.5F * (at(0, s) - at(1, s) + at(2, s));
                    rows[3][s] = at(2, s);
                }
                float* to = packed + first * places * channels_ + i * outputs + o;
                const std::int64_t step = channels_ * outputs;
                for (std::int64_t r = 0; r < side; ++r, to += side * step) {
                    to[0] = rows[r][0];
                    to[step] = 0.5F * (rows[r][0] + rows[r][1] + rows[r][2]);
                    to[2 * step] = 0.5F * (rows[r][0] - rows[r][1] + rows[r][2]);
                    to[3 * step] = rows[r][2];
                }
            }
        }
    }
}

void WinogradConvolution::run(const float* from, const float* packed, const float* bias, float* to) const {
    const std::int64_t groups = (batch_ + group_ - 1) / group_;
    for_slices(groups, 1, [&](std::size_t, std::int64_t begin, std::int64_t end) {
        Memory memory{.planes = lines(channels_ * plane_ + lanes),
                      .inputs = lines(channels_ * transformed),
                      .products = lines(outputs_together * transformed)};
        for (std::int64_t group = begin; group < end; ++group) {
            const std::int64_t first = group * group_;
            run_group(from + first * height_ * width_ * channels_, std::min(group_, batch_ - first), packed, bias,
                      to + first * height_out_ * width_out_ * channels_out_, memory);
        }
    });
}

void WinogradConvolution::run_group(const float* from, std::int64_t samples, const float* packed, const float* bias,
                                    float* to, Memory& memory) const {
    for (std::int64_t n = 0; n < samples; ++n) {
        fill_planes(from + n * height_ * width_ * channels_,
                    memory.planes.data()->values + n * 2 * (tile_rows_ + 1) * row_);
    }
    float* const inputs = memory.inputs.data()->values;
    float* const products = memory.products.data()->values;
    const std::int64_t parts = blocks_of(channels_out_);
    // Memory is not read and written in an order that the processor foresees: the next group's input is asked for, and
    // about what the next block writes.
    const std::int64_t steps = parts * places;
    const auto all_steps = static_cast<std::int64_t>(blocks_.size()) * steps;
    const std::int64_t input = group_ * height_ * width_ * channels_;
    Ahead next_input(from + input, input, all_steps);
    Ahead next_output(to, group_ * height_out_ * width_out_ * channels_out_, all_steps);
    next_output.next += steps * next_output.lines * Ahead::line;
    for (const Block& block : blocks_) {
        if (block.segments.front().sample >= samples) {
            break;
        }
        transform_inputs(block, samples, memory);
        std::uint32_t tiles = 0;
        for (const Segment& segment : block.segments) {
            tiles |= segment.sample < samples ? std::uint32_t{first_lanes(segment.count)} << segment.place : 0;
        }
        for (std::int64_t part = 0; part < parts; ++part) {
            const std::int64_t first = channels_out_ * part / parts;
            const std::int64_t behind = channels_out_ * (part + 1) / parts;
            const std::int64_t outputs = behind - first;
            const float* weights = packed + first * places * channels_;
            for (std::int64_t place = 0; place < places; ++place, weights += channels_ * outputs) {
                fetch(next_input);
                fetch<1>(next_output);
                multiply_of[static_cast<std::size_t>(outputs - 1)](
                    weights, inputs + place * together, channels_,
                    place == everywhere && bias != nullptr ? bias + first : nullptr, products + place * together);
            }
            write_outputs(block, tiles, first, behind, to, memory);
        }
    }
    if (activation_ != Activation::none && activation_ != Activation::relu) {
        apply_activation(activation_, to, to,
                         static_cast<std::size_t>(samples * height_out_ * width_out_ * channels_out_));
    }
}

/// A sample as planes; what lies outside the image stays 0.
void WinogradConvolution::fill_planes(const float* sample, float* planes) const {
    for (std::int64_t i = 0; i < height_; ++i) {
        for (std::int64_t parity = 0; parity < 2; ++parity) {
            const std::int64_t first = (parity + padding_) % 2;  // the image's first column of this kind
            const std::int64_t count = (width_ - first + 1) / 2;
            float* const to = planes + (i + padding_) * row_ + parity * (tile_columns_ + 1) + (first + padding_) / 2;
            for (std::int64_t j = 0; j < count; j += lanes) {
                for (std::int64_t c = 0; c < channels_; c += channels_together) {
                    const std::int64_t channel = std::min(c, channels_ - channels_together);
                    const std::int64_t pixel = i * width_ + first + 2 * j;
                    gather(sample + pixel * channels_ + channel, 2 * channels_, std::min(lanes, count - j),
                           pixel + 2 * lanes <= height_ * width_, to + j + channel * plane_, plane_);
                }
            }
        }
    }
}

void WinogradConvolution::transform_inputs(const Block& block, std::int64_t samples, Memory& memory) const {
    const float* const planes = memory.planes.data()->values;
    float* const inputs = memory.inputs.data()->values;
    for (const Segment& segment : block.segments) {
        if (segment.sample >= samples) {
            break;
        }
        const std::int64_t row = segment.sample * 2 * (tile_rows_ + 1) + 2 * segment.row;
        transform_input(planes + row * row_ + segment.column, channels_, plane_, tile_columns_ + 1,
                        first_lanes(segment.count), inputs + segment.place);
    }
}

__attribute__((target("avx512f"))) void WinogradConvolution::write_outputs(const Block& block, std::uint32_t tiles,
                                                                           std::int64_t first, std::int64_t behind,
                                                                           float* to, const Memory& memory) const {
    const std::int64_t pixel_places[4] = {0, channels_out_, width_out_ * channels_out_,
                                          (width_out_ + 1) * channels_out_};
    for (std::int64_t place = 0; place < together; place += lanes) {
        for (std::int64_t o = first; o < behind; o += channels_together) {
            const std::int64_t channel = std::min(o, behind - channels_together);
            __m512 pixels[4][channels_together];
#pragma GCC unroll 4
            for (std::int64_t c = 0; c < channels_together; ++c) {
                __m512 outputs[4];
                transform_output(memory.products.data()->values + (channel - first + c) * transformed + place, outputs);
#pragma GCC unroll 4
                for (std::int64_t pixel = 0; pixel < 4; ++pixel) {
                    // In this order NaN propagates.
                    pixels[pixel][c] =
                        activation_ == Activation::relu
                            ? _mm512_maskz_max_ps(first_lanes(lanes), _mm512_setzero_ps(), outputs[pixel])
                            : outputs[pixel];
                }
            }
#pragma GCC unroll 4
            for (std::size_t pixel = 0; pixel < 4; ++pixel) {
                scatter(pixels[pixel], block.places.data() + place, (block.is_written[pixel] & tiles) >> place,
                        to + channel + pixel_places[pixel]);
            }
        }
    }
}

#else

struct WinogradConvolution::Memory {};
bool WinogradConvolution::suits(const ConvolutionShape&) noexcept {
    return false;
}
WinogradConvolution::WinogradConvolution(const ConvolutionShape&, Direction) {}
std::size_t WinogradConvolution::packed_weights() const noexcept {
    return 0;
}
void WinogradConvolution::pack(const float*, float*) const {}
void WinogradConvolution::run(const float*, const float*, const float*, float*) const {}

#endif

}  // namespace finch::backend::cpu
