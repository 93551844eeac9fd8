#pragma once

#include "kernels.hpp"
#include "vectors.hpp"

namespace finch::backend::cpu::FINCH_ISA {

/// Winograd's F(2 × 2, 3 × 3) on planes (PlanesGeometry). A vector holds tiles of one channel, so that no lane is idle
/// for any number of channels. Each access is a plain vector: tile t reads and writes at fixed distances from t.
struct Planes {
    static constexpr int side = 4;
    static constexpr int places = side * side;
    static constexpr std::int64_t together = 2 * lanes;      ///< tiles of a block
    static constexpr std::int64_t line = 16;                 ///< floats between places (see Channels)
    static constexpr int most_inputs = 5, most_outputs = 2;  ///< of the dot products that are computed together

    static std::int64_t tiles_of(const PlanesGeometry& at) { return (at.tiles + together - 1) / together * together; }

    static std::int64_t scratch_floats(const PlanesPass& pass) {
        const std::int64_t forward = places * ((pass.channels + most_rows) * together + 2 * line);
        const std::int64_t backward =
            places * ((pass.channels + pass.channels_out) * tiles_of(pass.geometry) + 2 * line);
        return larger(forward, backward);
    }
    static std::int64_t sums_floats(const PlanesPass& pass) {
        return (places * pass.channels + 1) * pass.channels_out * lanes;
    }

    /// Computes G g Gᵀ of each kernel: (place, input, output).
    static void pack(const PlanesPass& pass, const float* weights, bool rotated, float* packed) {
        constexpr float g[side][3] = {{1, 0, 0}, {.5F, .5F, .5F}, {.5F, -.5F, .5F}, {0, 0, 1}};
        for (std::int64_t i = 0; i < pass.channels; ++i) {
            for (std::int64_t o = 0; o < pass.channels_out; ++o) {
                const float* kernel = weights + 9 * (rotated ? i * pass.channels_out + o : o * pass.channels + i);
                float half[side][3] = {};
                for (int r = 0; r < side; ++r) {
                    for (int k = 0; k < 9; ++k) {
                        half[r][k % 3] += g[r][k / 3] * kernel[rotated ? 8 - k : k];
                    }
                }
                for (int p = 0; p < places; ++p) {
                    float sum = 0;
                    for (int k = 0; k < 3; ++k) {
                        sum += g[p % side][k] * half[p / side][k];
                    }
                    packed[(p * pass.channels + i) * pass.channels_out + o] = sum;
                }
            }
        }
    }

    /// Computes Bᵀ d B of a vector of tiles of each channel.
    FINCH_INLINE static void transform_input(const PlanesGeometry& at, std::int64_t channels, const float* x, float* to,
                                             std::int64_t to_channel, std::int64_t to_place) {
        for (std::int64_t c = 0; c < channels; ++c, x += 4 * at.plane, to += to_channel) {
            Vector d[side][side];
            Vector done[side][side];
            FINCH_UNROLL for (int r = 0; r < side; ++r) {
                FINCH_UNROLL for (int s = 0; s < side; ++s) {
                    const float* const from = x + (r % 2 * 2 + s % 2) * at.plane + r / 2 * at.pitch + s / 2;
                    d[r][s] = s == 1 || s == 2 ? load_once(from) : load(from);
                }
            }
            both_ways<&Minimal<2>::input>(d, done);
            FINCH_UNROLL for (int p = 0; p < places; ++p) {
                store(to + p * to_place, done[p / side][p % side]);
            }
        }
    }

    /// The offset of output (r, s) of tile 0 in the planes of a channel.
    FINCH_INLINE static std::int64_t output_at(const PlanesGeometry& at, int r, int s) {
        return ((r + 1) % 2 * 2 + (s + 1) % 2) * at.plane + (r + 1) / 2 * at.pitch + (s + 1) / 2;
    }

    /// Sets the places of a channel's planes to 0 that no tile writes.
    static void clear_rest(const PlanesGeometry& at, float* planes) {
        for (int r = 0; r < 2; ++r) {
            for (int s = 0; s < 2; ++s) {
                const std::int64_t offset = output_at(at, r, s);
                float* const plane = planes + offset / at.plane * at.plane;
                const std::int64_t begin = offset % at.plane;
                for (std::int64_t k = 0; k < begin; ++k) {
                    plane[k] = 0;
                }
                for (std::int64_t k = begin + tiles_of(at); k < at.plane; ++k) {
                    plane[k] = 0;
                }
            }
        }
    }

    /// Computes Aᵀ t A of a vector of tiles, and writes the outputs. Outputs outside of the image become 0.
    FINCH_INLINE static void write_output(const PlanesGeometry& at, const float* products, std::int64_t place,
                                          std::int64_t tile, Vector shift, bool has_relu, float* y) {
        Vector transformed[side][side];
        Vector pixels[2][2];
        FINCH_UNROLL for (int p = 0; p < places; ++p) {
            transformed[p / side][p % side] = load(products + p * place);
        }
        both_ways<&Minimal<2>::output>(transformed, pixels);
        FINCH_UNROLL for (int r = 0; r < 2; ++r) {
            FINCH_UNROLL for (int s = 0; s < 2; ++s) {
                const auto mask = reinterpret_cast<Mask>(
                    load(reinterpret_cast<const float*>(at.inside) + (2 * r + s) * at.plane + tile));
                const Vector value = pixels[r][s] + shift;
                store(y + output_at(at, r, s) + tile, keep(has_relu ? relu(value) : value, mask));
            }
        }
    }

    static void run(const PlanesPass& pass, const float* from, const float* packed, const float* bias, bool has_relu,
                    float* to, float* scratch) {
        const PlanesGeometry& at = pass.geometry;
        const std::int64_t input_place = pass.channels * together + line;
        constexpr std::int64_t product_place = most_rows * together + line;
        float* const inputs = scratch;
        float* const products = scratch + places * input_place;
        for (std::int64_t tile = 0; tile < at.tiles; tile += together) {
            for (std::int64_t k = 0; k < together; k += lanes) {
                transform_input(at, pass.channels, from + tile + k, inputs + k, together, input_place);
            }
            for_parts(pass.channels_out, most_rows, [&](std::int64_t first, std::int64_t rows) {
                for (int p = 0; p < places; ++p) {
                    multiply_rows<false>(rows, 2,
                                         {.a = packed + p * pass.channels * pass.channels_out + first,
                                          .a_row = 1,
                                          .a_k = pass.channels_out,
                                          .b = inputs + p * input_place,
                                          .b_k = together,
                                          .to = products + p * product_place,
                                          .to_row = together,
                                          .count = pass.channels});
                }
                for (std::int64_t o = 0; o < rows; ++o) {
                    const Vector shift = bias != nullptr ? all(bias[first + o]) : Vector{};
                    for (std::int64_t k = 0; k < together; k += lanes) {
                        write_output(at, products + o * together + k, product_place, tile + k, shift, has_relu,
                                     to + (first + o) * 4 * at.plane);
                    }
                }
            });
        }
        for (std::int64_t o = 0; o < pass.channels_out; ++o) {
            clear_rest(at, to + o * 4 * at.plane);
        }
    }

    /// Computes A grad Aᵀ of a vector of tiles of each output, and adds the gradients to the sums of the bias.
    FINCH_INLINE static void transform_gradient(const PlanesPass& pass, const float* y, float* grad_y, float* to,
                                                std::int64_t to_channel, std::int64_t to_place, float* bias_sums) {
        const PlanesGeometry& at = pass.geometry;
        for (std::int64_t o = 0; o < pass.channels_out; ++o, grad_y += 4 * at.plane, to += to_channel) {
            Vector pixels[2][2];
            Vector done[side][side];
            FINCH_UNROLL for (int r = 0; r < 2; ++r) {
                FINCH_UNROLL for (int s = 0; s < 2; ++s) {
                    pixels[r][s] = load_once(grad_y + output_at(at, r, s));
                    if (y != nullptr) {
                        pixels[r][s] = keep(pixels[r][s], load(y + o * 4 * at.plane + output_at(at, r, s)) > 0.0F);
                        store(grad_y + output_at(at, r, s), pixels[r][s]);
                    }
                }
            }
            both_ways<&Minimal<2>::gradient>(pixels, done);
            float* const sum = bias_sums + o * lanes;
            store(sum, load(sum) + ((pixels[0][0] + pixels[0][1]) + (pixels[1][0] + pixels[1][1])));
            FINCH_UNROLL for (int p = 0; p < places; ++p) {
                store(to + p * to_place, done[p / side][p % side]);
            }
        }
    }

    /// Computes sums[i][o] += Σ over tiles of inputs[i] · grads[o], one sum per lane.
    template <int inputs, int outputs>
    __attribute__((noinline)) static void add_dots(const float* x, const float* grad, std::int64_t row,
                                                   std::int64_t tiles, float* sums, std::int64_t sums_row) {
        Vector all_sums[inputs][outputs];
        FINCH_UNROLL for (int i = 0; i < inputs; ++i) {
            FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                all_sums[i][o] = Vector{};
            }
        }
        _Pragma("GCC unroll 2") for (std::int64_t k = 0; k < tiles; k += lanes) {
            Vector right[outputs];
            FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                right[o] = load(grad + o * row + k);
            }
            FINCH_UNROLL for (int i = 0; i < inputs; ++i) {
                const Vector left = load_once(x + i * row + k);
                FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                    all_sums[i][o] += left * right[o];
                }
            }
        }
        FINCH_UNROLL for (int i = 0; i < inputs; ++i) {
            FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                float* const to = sums + i * sums_row + o * lanes;
                store(to, load(to) + all_sums[i][o]);
            }
        }
    }
    template <int inputs = most_inputs>
    FINCH_INLINE static void add_dots_of(std::int64_t count_in, std::int64_t count_out, const float* x,
                                         const float* grad, std::int64_t row, std::int64_t tiles, float* sums,
                                         std::int64_t sums_row) {
        if constexpr (inputs > 1) {
            if (count_in < inputs) {
                add_dots_of<inputs - 1>(count_in, count_out, x, grad, row, tiles, sums, sums_row);
                return;
            }
        }
        count_out == 2 ? add_dots<inputs, 2>(x, grad, row, tiles, sums, sums_row)
                       : add_dots<inputs, 1>(x, grad, row, tiles, sums, sums_row);
    }

    /// The sums are (place, input, output, lane), then (output, lane) for the bias.
    static void add_gradient(const PlanesPass& pass, const float* x, const float* y, float* grad_y, float* sums,
                             float* scratch) {
        const PlanesGeometry& at = pass.geometry;
        const std::int64_t tiles = tiles_of(at);
        const std::int64_t input_place = pass.channels * tiles + line;
        const std::int64_t grad_place = pass.channels_out * tiles + line;
        float* const inputs = scratch;
        float* const grads = scratch + places * input_place;
        const std::int64_t row = pass.channels_out * lanes;
        float* const bias_sums = sums + places * pass.channels * row;
        for (std::int64_t tile = 0; tile < at.tiles; tile += lanes) {
            transform_input(at, pass.channels, x + tile, inputs + tile, tiles, input_place);
            transform_gradient(pass, y != nullptr ? y + tile : nullptr, grad_y + tile, grads + tile, tiles, grad_place,
                               bias_sums);
        }
        for (int p = 0; p < places; ++p) {
            for_parts(pass.channels, most_inputs, [&](std::int64_t i, std::int64_t count) {
                for (std::int64_t o = 0; o < pass.channels_out; o += most_outputs) {
                    add_dots_of(count, smaller(most_outputs, pass.channels_out - o),
                                inputs + p * input_place + i * tiles, grads + p * grad_place + o * tiles, tiles,
                                (at.tiles + lanes - 1) / lanes * lanes,
                                sums + (p * pass.channels + i) * row + o * lanes, row);
                }
            });
        }
    }

    FINCH_INLINE static float total(const float* sums) {
        float sum = 0;
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
            sum += sums[lane];
        }
        return sum;
    }
    static void write_gradient(const PlanesPass& pass, const float* sums, float* grad_weights, float* grad_bias) {
        constexpr float g[side][3] = {{1, 0, 0}, {.5F, .5F, .5F}, {.5F, -.5F, .5F}, {0, 0, 1}};
        const std::int64_t row = pass.channels_out * lanes;
        for (std::int64_t o = 0; o < pass.channels_out; ++o) {
            grad_bias[o] = total(sums + places * pass.channels * row + o * lanes);
            for (std::int64_t i = 0; i < pass.channels; ++i) {
                float half[3][side] = {};
                for (int p = 0; p < places; ++p) {
                    const float sum = total(sums + (p * pass.channels + i) * row + o * lanes);
                    for (int k = 0; k < 3; ++k) {
                        half[k][p % side] += g[p / side][k] * sum;
                    }
                }
                for (int k = 0; k < 9; ++k) {
                    float sum = 0;
                    for (int s = 0; s < side; ++s) {
                        sum += g[s][k % 3] * half[k / 3][s];
                    }
                    grad_weights[(o * pass.channels + i) * 9 + k] = sum;
                }
            }
        }
    }

    using Four = float __attribute__((vector_size(16), aligned(4), may_alias));

    /// Transposes 4 pixels of 4 channels.
    FINCH_INLINE static void transpose(Four (&v)[4]) {
        const Four a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
        const Four b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
        const Four c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
        const Four d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
        v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
        v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
        v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
        v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
    }
    template <class Pixels>
    FINCH_INLINE static Pixels& at(float* place) {
        return *reinterpret_cast<Pixels*>(place);
    }
    template <class Pixels>
    FINCH_INLINE static Pixels at(const float* place) {
        return *reinterpret_cast<const Pixels*>(place);
    }
    /// Four channels of each pixel, `step` floats from one pixel to the next.
    FINCH_INLINE static void load_pixels(const float* nhwc, std::int64_t step, Four (&v)[4]) {
        FINCH_UNROLL for (int k = 0; k < 4; ++k) {
            v[k] = at<Four>(nhwc + k * step);
        }
    }
    FINCH_INLINE static void store_pixels(float* nhwc, std::int64_t step, const Four (&v)[4]) {
        FINCH_UNROLL for (int k = 0; k < 4; ++k) {
            at<Four>(nhwc + k * step) = v[k];
        }
    }
#if FINCH_LANES >= 8
    using Eight = float __attribute__((vector_size(32), aligned(4), may_alias));
    /// Transposes twice 4 pixels of 4 channels: the halves of the vectors are pixels 0 to 3 and 4 to 7.
    FINCH_INLINE static void transpose(Eight (&v)[4]) {
        const Eight a = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13);
        const Eight b = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13);
        const Eight c = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
        const Eight d = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
        v[0] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
        v[1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
        v[2] = __builtin_shufflevector(c, d, 0, 1, 8, 9, 4, 5, 12, 13);
        v[3] = __builtin_shufflevector(c, d, 2, 3, 10, 11, 6, 7, 14, 15);
    }
    FINCH_INLINE static void load_pixels(const float* nhwc, std::int64_t step, Eight (&v)[4]) {
        FINCH_UNROLL for (int k = 0; k < 4; ++k) {
            v[k] = __builtin_shufflevector(at<Four>(nhwc + k * step), at<Four>(nhwc + (4 + k) * step), 0, 1, 2, 3, 4, 5,
                                           6, 7);
        }
    }
    FINCH_INLINE static void store_pixels(float* nhwc, std::int64_t step, const Eight (&v)[4]) {
        FINCH_UNROLL for (int k = 0; k < 4; ++k) {
            at<Four>(nhwc + k * step) = __builtin_shufflevector(v[k], v[k], 0, 1, 2, 3);
            at<Four>(nhwc + (4 + k) * step) = __builtin_shufflevector(v[k], v[k], 4, 5, 6, 7);
        }
    }
#else
    using Eight = Four;
#endif

    /// Copies `pixels` pixels of `channels` channels between NHWC (`step` floats from one pixel to the next) and planes
    /// (`plane` floats from one channel to the next), as many pixels at a time as Pixels holds.
    template <bool to_planes, class Pixels, class Nhwc, class Plane>
    FINCH_INLINE static void copy_groups(Nhwc* nhwc, std::int64_t step, std::int64_t pixels, std::int64_t channels,
                                         Plane* planes, std::int64_t plane) {
        constexpr std::int64_t width = sizeof(Pixels) / sizeof(float);
        for (std::int64_t group = 0; group < pixels; group += width) {
            const std::int64_t p = smaller(group, pixels - width);
            for (std::int64_t of_channels = 0; of_channels < channels; of_channels += 4) {
                const std::int64_t c = smaller(of_channels, channels - 4);
                Pixels v[4];
                if constexpr (to_planes) {
                    load_pixels(nhwc + p * step + c, step, v);
                    transpose(v);
                    FINCH_UNROLL for (int k = 0; k < 4; ++k) {
                        at<Pixels>(planes + (c + k) * plane + p) = v[k];
                    }
                } else {
                    FINCH_UNROLL for (int k = 0; k < 4; ++k) {
                        v[k] = at<Pixels>(planes + (c + k) * plane + p);
                    }
                    transpose(v);
                    store_pixels(nhwc + p * step + c, step, v);
                }
            }
        }
    }
    template <bool to_planes, class Nhwc, class Plane>
    FINCH_INLINE static void copy_pixels(Nhwc* nhwc, std::int64_t step, std::int64_t pixels, std::int64_t channels,
                                         Plane* planes, std::int64_t plane) {
        constexpr std::int64_t eight = sizeof(Eight) / sizeof(float);
        if (channels >= 4 && pixels >= eight) {
            copy_groups<to_planes, Eight>(nhwc, step, pixels, channels, planes, plane);
        } else if (channels >= 4 && pixels >= 4) {
            copy_groups<to_planes, Four>(nhwc, step, pixels, channels, planes, plane);
        } else {
            for (std::int64_t p = 0; p < pixels; ++p) {
                for (std::int64_t c = 0; c < channels; ++c) {
                    if constexpr (to_planes) {
                        planes[c * plane + p] = nhwc[p * step + c];
                    } else {
                        nhwc[p * step + c] = planes[c * plane + p];
                    }
                }
            }
        }
    }
    template <bool to_planes, class Nhwc, class Plane>
    FINCH_INLINE static void copy(const PlanesGeometry& geometry, std::int64_t padding, std::int64_t height,
                                  std::int64_t width, std::int64_t channels, Nhwc* nhwc, Plane* planes) {
        for (std::int64_t i = 0; i < height; ++i) {
            for (std::int64_t first = 0; first < 2 && first < width; ++first) {
                const std::int64_t offset = ((i + padding) % 2 * 2 + (first + padding) % 2) * geometry.plane +
                                            (i + padding) / 2 * geometry.pitch + (first + padding) / 2;
                copy_pixels<to_planes>(nhwc + (i * width + first) * channels, 2 * channels, (width - first + 1) / 2,
                                       channels, planes + offset, 4 * geometry.plane);
            }
        }
    }

    static void fill(const PlanesGeometry& at, std::int64_t padding, std::int64_t height, std::int64_t width,
                     std::int64_t channels, const float* nhwc, float* planes) {
        __builtin_memset(planes, 0, static_cast<unsigned long>(channels * 4 * at.plane) * sizeof(float));
        copy<true>(at, padding, height, width, channels, nhwc, planes);
    }
    static void read(const PlanesGeometry& at, std::int64_t height, std::int64_t width, std::int64_t channels,
                     const float* planes, float* nhwc) {
        copy<false>(at, 1, height, width, channels, nhwc, planes);
    }

    static constexpr PlanesKernels table{.scratch_floats = &scratch_floats,
                                         .sums_floats = &sums_floats,
                                         .pack = &pack,
                                         .run = &run,
                                         .add_gradient = &add_gradient,
                                         .write_gradient = &write_gradient,
                                         .fill = &fill,
                                         .read = &read};
};

}  // namespace finch::backend::cpu::FINCH_ISA
