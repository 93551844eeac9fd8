#pragma once

#include "kernels.hpp"
#include "vectors.hpp"

namespace finch::backend::cpu::FINCH_ISA {

/// Winograd's F(m × m, 3 × 3) on NHWC. A vector holds channels of one pixel. The tiles of several samples are
/// multiplied together: for each of the (m + 2)² places of a transformed tile, the product of (tiles, inputs) and
/// (inputs, outputs).
template <int m>
struct Channels {
    static constexpr int side = m + 2;
    static constexpr int places = side * side;
    static constexpr std::int64_t line = 16;  ///< floats between places, so that they do not share a set of the cache

    /// Tiles of a block, so that the transformed tiles stay in the cache.
    static std::int64_t block_of(std::int64_t channels) {
        constexpr std::int64_t floats = 40'000;
        return larger(2, smaller(8, floats / (places * channels))) * most_rows;
    }
    static std::int64_t gradient_block_of(const ConvolutionPass& pass) {
        constexpr std::int64_t floats = 60'000;
        const std::int64_t channels = larger(pass.channels, pass.channels_out);
        return larger(4, smaller(16, floats / (places * channels))) * 6;
    }

    static std::int64_t packed_floats(const ConvolutionPass& pass) {
        return places * pass.channels * vectors_of(pass.channels_out) * lanes;
    }
    static std::int64_t scratch_floats(const ConvolutionPass& pass) {
        const std::int64_t outputs = vectors_of(pass.channels_out) * lanes;
        const std::int64_t forward = places * (block_of(pass.channels) * (pass.channels + 2 * lanes) + 2 * line);
        const std::int64_t backward = places * (gradient_block_of(pass) * (pass.channels + outputs) + 2 * line);
        return pass.channels + line + larger(forward, backward);
    }
    static std::int64_t sums_floats(const ConvolutionPass& pass) {
        return (places * pass.channels + 1) * vectors_of(pass.channels_out) * lanes;
    }

    /// Calls work(first vector, vectors, offset in `packed`) for pairs of vectors of outputs.
    template <class Work>
    FINCH_INLINE static void for_outputs(const ConvolutionPass& pass, Work work) {
        const std::int64_t vectors = vectors_of(pass.channels_out);
        for (std::int64_t v = 0; v < vectors; v += 2) {
            work(v, smaller(2, vectors - v), places * pass.channels * v * lanes);
        }
    }

    /// Computes G g Gᵀ of each kernel: (pair of vectors of outputs, place, input, output of the pair).
    static void pack(const ConvolutionPass& pass, const float* weights, bool rotated, float* packed) {
        const std::int64_t of_output = 9 * (rotated ? 1 : pass.channels);
        const std::int64_t of_input = 9 * (rotated ? pass.channels_out : 1);
        for_outputs(pass, [&](std::int64_t first, std::int64_t vectors, std::int64_t offset) {
            for (std::int64_t i = 0; i < pass.channels; ++i) {
                for (std::int64_t v = 0; v < vectors; ++v) {
                    const float* from = weights + first_of(first + v, pass.channels_out) * of_output + i * of_input;
                    alignas(64) float taps[9][lanes];
                    for (std::int64_t lane = 0; lane < lanes; ++lane, from += of_output) {
                        FINCH_UNROLL for (int k = 0; k < 9; ++k) {
                            taps[k][lane] = from[rotated ? 8 - k : k];
                        }
                    }
                    Vector kernel[3][3];
                    Vector done[side][side];
                    FINCH_UNROLL for (int k = 0; k < 9; ++k) {
                        kernel[k / 3][k % 3] = load(taps[k]);
                    }
                    both_ways<&Minimal<m>::template kernel<Vector>>(kernel, done);
                    float* const to = packed + offset + (i * vectors + v) * lanes;
                    FINCH_UNROLL for (int p = 0; p < places; ++p) {
                        store(to + p * pass.channels * vectors * lanes, done[p / side][p % side]);
                    }
                }
            }
        });
    }

    struct Tile {
        std::int64_t sample, row, column;  ///< row and column of the first output
    };
    FINCH_INLINE static Tile tile_at(const ConvolutionPass& pass, std::int64_t tile) {
        const std::int64_t row = tile / pass.tile_columns;
        return {row / pass.tile_rows, m * (row % pass.tile_rows), m * (tile % pass.tile_columns)};
    }

    /// Computes Bᵀ d B of `count` tiles: (place, tile, channel).
    static void transform_input(const ConvolutionPass& pass, const float* x, std::int64_t first, std::int64_t count,
                                const float* zeros, float* to, std::int64_t place) {
        const std::int64_t row = pass.width * pass.channels;
        for (std::int64_t t = 0; t < count; ++t, to += pass.channels) {
            const Tile tile = tile_at(pass, first + t);
            const std::int64_t top = tile.row - pass.padding;
            const std::int64_t left = tile.column - pass.padding;
            const float* const corner = x + (tile.sample * pass.height + top) * row + left * pass.channels;
            const float* pixels[side][side];
            FINCH_UNROLL for (int r = 0; r < side; ++r) {
                const bool is_row = top + r >= 0 && top + r < pass.height;
                FINCH_UNROLL for (int s = 0; s < side; ++s) {
                    const bool is_inside = is_row && left + s >= 0 && left + s < pass.width;
                    pixels[r][s] = is_inside ? corner + r * row + s * pass.channels : zeros;
                }
            }
            for (std::int64_t v = 0; v < vectors_of(pass.channels); ++v) {
                const std::int64_t channel = first_of(v, pass.channels);
                Vector d[side][side];
                Vector done[side][side];
                FINCH_UNROLL for (int r = 0; r < side; ++r) {
                    FINCH_UNROLL for (int s = 0; s < side; ++s) {
                        d[r][s] = load_once(pixels[r][s] + channel);
                    }
                }
                both_ways<&Minimal<m>::input>(d, done);
                FINCH_UNROLL for (int p = 0; p < places; ++p) {
                    store(to + channel + p * place, done[p / side][p % side]);
                }
            }
        }
    }

    /// Computes Aᵀ t A of `count` tiles, and writes the outputs that lie in the image.
    static void write_outputs(const ConvolutionPass& pass, const float* products, std::int64_t place,
                              std::int64_t vectors, std::int64_t first, std::int64_t count, std::int64_t first_vector,
                              const float* bias, bool has_relu, float* y) {
        for (std::int64_t t = 0; t < count; ++t) {
            const Tile tile = tile_at(pass, first + t);
            float* const corner =
                y + ((tile.sample * pass.height_out + tile.row) * pass.width_out + tile.column) * pass.channels_out;
            const std::int64_t rows = smaller(m, pass.height_out - tile.row);
            const std::int64_t columns = smaller(m, pass.width_out - tile.column);
            for (std::int64_t v = 0; v < vectors; ++v, products += lanes) {
                const std::int64_t channel = first_of(first_vector + v, pass.channels_out);
                Vector transformed[side][side];
                Vector pixels[m][m];
                FINCH_UNROLL for (int p = 0; p < places; ++p) {
                    transformed[p / side][p % side] = load(products + p * place);
                }
                both_ways<&Minimal<m>::output>(transformed, pixels);
                const Vector shift = bias != nullptr ? load(bias + channel) : Vector{};
                FINCH_UNROLL for (int r = 0; r < m; ++r) {
                    FINCH_UNROLL for (int s = 0; s < m; ++s) {
                        if (r < rows && s < columns) {
                            const Vector value = pixels[r][s] + shift;
                            store(corner + (r * pass.width_out + s) * pass.channels_out + channel,
                                  has_relu ? relu(value) : value);
                        }
                    }
                }
            }
        }
    }

    static float* clear(float* zeros, std::int64_t count) {
        for (std::int64_t k = 0; k < count; ++k) {
            zeros[k] = 0;
        }
        return zeros + (count + line - 1) / line * line;
    }

    static void run(const ConvolutionPass& pass, const float* from, const float* packed, const float* bias,
                    bool has_relu, float* to, std::int64_t first, std::int64_t behind, float* scratch) {
        const std::int64_t block = block_of(pass.channels);
        const std::int64_t input_place = block * pass.channels + line;
        const std::int64_t product_place = block * 2 * lanes + line;
        const float* const zeros = scratch;
        float* const inputs = clear(scratch, pass.channels);
        float* const products = inputs + places * input_place;
        for (; first < behind; first += block) {
            const std::int64_t count = smaller(block, behind - first);
            transform_input(pass, from, first, count, zeros, inputs, input_place);
            for_outputs(pass, [&](std::int64_t vector, std::int64_t vectors, std::int64_t offset) {
                const float* weights = packed + offset;
                for (int p = 0; p < places; ++p, weights += pass.channels * vectors * lanes) {
                    for_parts(count, most_rows, [&](std::int64_t t, std::int64_t rows) {
                        multiply_rows<false>(rows, vectors,
                                             {.a = inputs + p * input_place + t * pass.channels,
                                              .a_row = pass.channels,
                                              .a_k = 1,
                                              .b = weights,
                                              .b_k = vectors * lanes,
                                              .to = products + p * product_place + t * vectors * lanes,
                                              .to_row = vectors * lanes,
                                              .count = pass.channels});
                    });
                }
                write_outputs(pass, products, product_place, vectors, first, count, vector, bias, has_relu, to);
            });
        }
    }

    /// Computes A grad Aᵀ of `count` tiles: (place, tile, output). Adds the gradients to the sums of the bias.
    static void transform_gradient(const ConvolutionPass& pass, const float* y, float* grad_y, std::int64_t first,
                                   std::int64_t count, float* to, std::int64_t place, float* bias_sums) {
        const std::int64_t vectors = vectors_of(pass.channels_out);
        for (std::int64_t t = 0; t < count; ++t, to += vectors * lanes) {
            const Tile tile = tile_at(pass, first + t);
            const std::int64_t corner =
                ((tile.sample * pass.height_out + tile.row) * pass.width_out + tile.column) * pass.channels_out;
            const std::int64_t rows = smaller(m, pass.height_out - tile.row);
            const std::int64_t columns = smaller(m, pass.width_out - tile.column);
            for (std::int64_t v = 0; v < vectors; ++v) {
                Vector pixels[m][m];
                Vector done[side][side];
                Vector sum{};
                FINCH_UNROLL for (int r = 0; r < m; ++r) {
                    FINCH_UNROLL for (int s = 0; s < m; ++s) {
                        pixels[r][s] = Vector{};
                        if (r < rows && s < columns) {
                            const std::int64_t at =
                                corner + (r * pass.width_out + s) * pass.channels_out + first_of(v, pass.channels_out);
                            pixels[r][s] = load(grad_y + at);
                            if (y != nullptr) {
                                pixels[r][s] = keep(pixels[r][s], load(y + at) > 0.0F);
                                store(grad_y + at, pixels[r][s]);
                            }
                        }
                        sum += pixels[r][s];
                    }
                }
                both_ways<&Minimal<m>::gradient>(pixels, done);
                store(bias_sums + v * lanes, load(bias_sums + v * lanes) + sum);
                FINCH_UNROLL for (int p = 0; p < places; ++p) {
                    store(to + v * lanes + p * place, done[p / side][p % side]);
                }
            }
        }
    }

    /// The sums are (place, input, output), then (output) for the bias. Outputs are in whole vectors.
    static void add_gradient(const ConvolutionPass& pass, const float* x, const float* y, float* grad_y,
                             std::int64_t first, std::int64_t behind, float* sums, float* scratch) {
        const std::int64_t outputs = vectors_of(pass.channels_out) * lanes;
        const std::int64_t block = gradient_block_of(pass);
        const std::int64_t input_place = block * pass.channels + line;
        const std::int64_t grad_place = block * outputs + line;
        const float* const zeros = scratch;
        float* const inputs = clear(scratch, pass.channels);
        float* const grads = inputs + places * input_place;
        for (; first < behind; first += block) {
            const std::int64_t count = smaller(block, behind - first);
            transform_input(pass, x, first, count, zeros, inputs, input_place);
            transform_gradient(pass, y, grad_y, first, count, grads, grad_place,
                               sums + places * pass.channels * outputs);
            for (int p = 0; p < places; ++p) {
                for (std::int64_t v = 0; v < outputs; v += 2 * lanes) {
                    for_parts(pass.channels, most_rows, [&](std::int64_t i, std::int64_t rows) {
                        multiply_rows<true>(rows, smaller(2, (outputs - v) / lanes),
                                            {.a = inputs + p * input_place + i,
                                             .a_row = 1,
                                             .a_k = pass.channels,
                                             .b = grads + p * grad_place + v,
                                             .b_k = outputs,
                                             .to = sums + (p * pass.channels + i) * outputs + v,
                                             .to_row = outputs,
                                             .count = count});
                    });
                }
            }
        }
    }

    static void write_gradient(const ConvolutionPass& pass, const float* sums, float* grad_weights, float* grad_bias) {
        const std::int64_t outputs = vectors_of(pass.channels_out) * lanes;
        for (std::int64_t v = 0; v < outputs; v += lanes) {
            const std::int64_t first = first_of(v / lanes, pass.channels_out);
            store(grad_bias + first, load(sums + places * pass.channels * outputs + v));
            for (std::int64_t i = 0; i < pass.channels; ++i) {
                Vector transformed[side][side];
                Vector kernel[3][3];
                FINCH_UNROLL for (int p = 0; p < places; ++p) {
                    transformed[p / side][p % side] = load(sums + (p * pass.channels + i) * outputs + v);
                }
                both_ways<&Minimal<m>::template weight<Vector>>(transformed, kernel);
                alignas(64) float taps[9][lanes];
                FINCH_UNROLL for (int k = 0; k < 9; ++k) {
                    store(taps[k], kernel[k / 3][k % 3]);
                }
                float* to = grad_weights + (first * pass.channels + i) * 9;
                for (std::int64_t lane = 0; lane < lanes; ++lane, to += pass.channels * 9) {
                    FINCH_UNROLL for (int k = 0; k < 9; ++k) {
                        to[k] = taps[k][lane];
                    }
                }
            }
        }
    }

    static constexpr ChannelsKernels table{.tile = m,
                                           .packed_floats = &packed_floats,
                                           .scratch_floats = &scratch_floats,
                                           .sums_floats = &sums_floats,
                                           .pack = &pack,
                                           .run = &run,
                                           .add_gradient = &add_gradient,
                                           .write_gradient = &write_gradient};
};

}  // namespace finch::backend::cpu::FINCH_ISA
