#pragma once

#include "kernels.hpp"
#include "planes_copy.hpp"
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
        for (std::int64_t i = 0; i < pass.channels; ++i) {
            for (std::int64_t o = 0; o < pass.channels_out; ++o) {
                const float* from = weights + 9 * (rotated ? i * pass.channels_out + o : o * pass.channels + i);
                float kernel[3][3];
                float done[side][side];
                for (int k = 0; k < 9; ++k) {
                    kernel[k / 3][k % 3] = from[rotated ? 8 - k : k];
                }
                both_ways<&Minimal<2>::kernel<float>>(kernel, done);
                for (int p = 0; p < places; ++p) {
                    packed[(p * pass.channels + i) * pass.channels_out + o] = done[p / side][p % side];
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

    static void write_gradient(const PlanesPass& pass, const float* sums, float* grad_weights, float* grad_bias) {
        const std::int64_t row = pass.channels_out * lanes;
        for (std::int64_t o = 0; o < pass.channels_out; ++o) {
            grad_bias[o] = sum_of(load(sums + places * pass.channels * row + o * lanes));
            for (std::int64_t i = 0; i < pass.channels; ++i, grad_weights += 9) {
                Vector transformed[side][side];
                Vector kernel[3][3];
                FINCH_UNROLL for (int p = 0; p < places; ++p) {
                    transformed[p / side][p % side] = load(sums + (p * pass.channels + i) * row + o * lanes);
                }
                both_ways<&Minimal<2>::weight<Vector>>(transformed, kernel);
                FINCH_UNROLL for (int k = 0; k < 9; ++k) {
                    grad_weights[k] = sum_of(kernel[k / 3][k % 3]);
                }
            }
        }
    }

    static constexpr PlanesKernels table{.scratch_floats = &scratch_floats,
                                         .sums_floats = &sums_floats,
                                         .pack = &pack,
                                         .run = &run,
                                         .add_gradient = &add_gradient,
                                         .write_gradient = &write_gradient,
                                         .fill = &PlanesCopy::fill,
                                         .read = &PlanesCopy::read};
};

}  // namespace finch::backend::cpu::FINCH_ISA
