#include "winograd.hpp"

#include "elementwise.hpp"
#include "fetch.hpp"
#include "library.hpp"
#include "slices.hpp"
#include "winograd_vectors.hpp"

#include <algorithm>
#include <utility>

namespace finch::backend::cpu {

#if defined(__x86_64__)
using namespace winograd;

namespace {

struct alignas(64) Line {
    float values[lanes];
};

std::vector<Line> lines(std::int64_t floats) {
    return std::vector<Line>(static_cast<std::size_t>((floats + lanes - 1) / lanes));
}

/// Returns the number of blocks into which `channels` are divided. The kernel processes the channels of one block in
/// the same pass.
std::int64_t blocks_of(std::int64_t channels) {
    return (channels + outputs_together - 1) / outputs_together;
}

}  // namespace

/// The work memory of one thread.
struct WinogradConvolution::Memory {
    std::vector<Line> planes, inputs, products;
};

bool WinogradConvolution::suits(const ConvolutionShape& shape) noexcept {
    const std::int64_t channels = std::min(shape.channels_in, shape.channels_out);
    if (!may_use(dnnl::cpu_isa::avx512_core) || shape.groups > 1 || shape.dilation > 1 || shape.kernel != 3 ||
        shape.stride != 1 || std::max(shape.padding_before, shape.padding_after) > 2 || channels < channels_together) {
        return false;
    }
    // Larger planes do not fit in the second-level cache.
    constexpr std::int64_t most_floats = 300'000;
    const std::int64_t width = std::min(shape.width, shape.width_out());
    if ((width + 4) * (shape.height + 4) * std::max(shape.channels_in, shape.channels_out) > most_floats) {
        return false;
    }
    // The limits were measured for 4 to 256 channels on 4 x 4 to 112 x 112 pixels (bench_operations). For the accepted
    // shapes this kernel is 1.1 to 2.1 times as fast as oneDNN. Rows with few tiles leave lanes idle in the input and
    // output transforms. With more products per tile the idle lanes matter less.
    return width >= 26 || (width * channels >= 448 && (width >= 14 || width == 8));
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
                const std::int64_t left = tile_columns_ - column;
                if (const std::int64_t room = lanes - place % lanes; room < std::min(left, least_count)) {
                    place += room;
                }
                const std::int64_t count = std::min(lanes - place % lanes, left);
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

/// Computes G g Gᵀ of each kernel and stores it as (block of outputs, place, input, output of the block).
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
    // The input of the next group, and approximately the output of the next block, are prefetched because the processor
    // cannot predict these memory accesses.
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

/// Copies a sample into planes. The parts of the planes outside the image stay 0.
void WinogradConvolution::fill_planes(const float* sample, float* planes) const {
    for (std::int64_t i = 0; i < height_; ++i) {
        for (std::int64_t parity = 0; parity < 2; ++parity) {
            const std::int64_t first = (parity + padding_) % 2;  // the image's first column with this parity
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
                    // With this order of operands NaN propagates.
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
