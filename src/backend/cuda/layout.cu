#include "finch/backend/cuda_runtime.hpp"

#include "grid.hpp"
#include "kernels/layout.hpp"
#include "layout.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace finch::backend::cuda {
namespace {

/// Returns the number of parts of a column sum. There are enough parts to fill a GPU, but so few that one thread can
/// add them.
std::int64_t column_parts(std::int64_t rows, std::int64_t channels) {
    return std::clamp<std::int64_t>(groups_of(256, groups_of(channels, 32)), 1, groups_of(rows, 32));
}

bool is_aligned(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory) % 16 == 0;
}

}  // namespace

template <class From, class To>
void copy_channels(cudaStream_t stream, const From* from, std::int64_t rows, std::int64_t channels_from, To* to,
                   std::int64_t channels_to) {
    if constexpr (!std::is_same_v<From, To>) {
        using Convert = ConvertNumbers<From, To>;
        const std::int64_t count = rows * channels_to;
        if (channels_from == channels_to && count % Convert::width == 0 && is_aligned(from) && is_aligned(to)) {
            FINCH_CUDA(
                launch(stream, grid_for(count / Convert::width), Convert{.from = from, .to = to, .count = count}));
            return;
        }
    }
    FINCH_CUDA(
        launch(stream, grid_for(rows * channels_to),
               CopyChannels<From, To>{
                   .from = from, .to = to, .rows = rows, .channels_from = channels_from, .channels_to = channels_to}));
}

template <class From, class To>
void move_images(cudaStream_t stream, std::int64_t batch, const From* from, const ImageSizes& from_sizes, To* to,
                 const ImageSizes& to_sizes, std::int64_t down) {
    FINCH_CUDA(launch(stream, grid_for(batch * to_sizes.height * to_sizes.width * to_sizes.channels),
                      MoveImages<From, To>{.from = from,
                                           .to = to,
                                           .batch = batch,
                                           .height = from_sizes.height,
                                           .width = from_sizes.width,
                                           .channels = from_sizes.channels,
                                           .height_to = to_sizes.height,
                                           .width_to = to_sizes.width,
                                           .channels_to = to_sizes.channels,
                                           .down = down}));
}

void transpose(cudaStream_t stream, const float* from, std::int64_t batch, std::int64_t rows, std::int64_t columns,
               float* to) {
    const std::int64_t across = groups_of(columns, Transpose::tile);
    const std::int64_t tiles = across * groups_of(rows, Transpose::tile);
    const Grid grid{.blocks_x = batch * tiles,
                    .threads = Transpose::max_threads,
                    .shared_bytes = Transpose::tile * (Transpose::tile + 1) * sizeof(float)};
    FINCH_CUDA(launch(stream, grid,
                      Transpose{.from = from,
                                .to = to,
                                .rows = rows,
                                .columns = columns,
                                .tiles = static_cast<int>(tiles),
                                .tiles_across = static_cast<int>(across)}));
}

template <class To>
void pack_weights(cudaStream_t stream, const WeightSizes& sizes, const float* canonical, To* packed) {
    const std::int64_t taps = sizes.kernel * sizes.kernel;
    FINCH_CUDA(launch(stream, grid_for(sizes.padded_out * taps * sizes.padded_in),
                      PackWeights<To>{.canonical = canonical,
                                      .packed = packed,
                                      .channels_out = sizes.channels_out,
                                      .channels_in = sizes.channels_in,
                                      .taps = taps,
                                      .padded_out = sizes.padded_out,
                                      .padded_in = sizes.padded_in}));
}

void unpack_weights(cudaStream_t stream, const WeightSizes& sizes, const float* packed, float* canonical) {
    const std::int64_t taps = sizes.kernel * sizes.kernel;
    FINCH_CUDA(launch(stream, grid_for(sizes.channels_out * sizes.channels_in * taps),
                      UnpackWeights{.packed = packed,
                                    .canonical = canonical,
                                    .channels_out = sizes.channels_out,
                                    .channels_in = sizes.channels_in,
                                    .taps = taps,
                                    .padded_in = sizes.padded_in}));
}

template <class From>
void bias_activation(cudaStream_t stream, Activation activation, const From* from, std::int64_t channels_from,
                     const float* bias, float* y, std::int64_t rows, std::int64_t channels) {
    const auto launch_with = [&]<int width>(std::integral_constant<int, width>) {
        FINCH_CUDA(launch(stream, grid_for(rows * channels / width),
                          BiasActivation<From, width>{.activation = activation,
                                                      .from = from,
                                                      .bias = bias,
                                                      .y = y,
                                                      .rows = rows,
                                                      .channels_from = channels_from,
                                                      .channels = channels}));
    };
    if (channels % 4 == 0 && channels_from % 4 == 0 && is_aligned(from) && is_aligned(y)) {
        launch_with(std::integral_constant<int, 4>{});
    } else {
        launch_with(std::integral_constant<int, 1>{});
    }
}

void activation_gradient(cudaStream_t stream, Activation activation, const float* y, float* grad, std::int64_t count) {
    FINCH_CUDA(launch(stream, grid_for(count),
                      ActivationGradient{.activation = activation, .y = y, .grad = grad, .count = count}));
}

void column_sums(cudaStream_t stream, const float* from, std::int64_t rows, std::int64_t channels, void* scratch,
                 float* sums) {
    const std::int64_t parts = column_parts(rows, channels);
    auto* partial = static_cast<float*>(scratch);
    FINCH_CUDA(launch(
        stream,
        {.blocks_x = parts, .blocks_y = groups_of(channels, 32), .threads = 256, .shared_bytes = 256 * sizeof(float)},
        ColumnSumsPart{.from = from, .partial = partial, .rows = rows, .channels = channels}));
    FINCH_CUDA(launch(
        stream, {.blocks_x = groups_of(channels, 128), .threads = 128},
        ColumnSumsEnd{.partial = partial, .sums = sums, .channels = channels, .parts = static_cast<int>(parts)}));
}

std::size_t column_sums_scratch(std::int64_t rows, std::int64_t channels) {
    return static_cast<std::size_t>(column_parts(rows, channels) * channels) * sizeof(float);
}

using Bfloat16 = __nv_bfloat16;
using Float16 = __half;

template void copy_channels(cudaStream_t, const float*, std::int64_t, std::int64_t, float*, std::int64_t);
template void copy_channels(cudaStream_t, const float*, std::int64_t, std::int64_t, Bfloat16*, std::int64_t);
template void copy_channels(cudaStream_t, const Bfloat16*, std::int64_t, std::int64_t, float*, std::int64_t);
template void copy_channels(cudaStream_t, const float*, std::int64_t, std::int64_t, Float16*, std::int64_t);
template void copy_channels(cudaStream_t, const Float16*, std::int64_t, std::int64_t, float*, std::int64_t);
template void move_images(cudaStream_t, std::int64_t, const float*, const ImageSizes&, float*, const ImageSizes&,
                          std::int64_t);
template void move_images(cudaStream_t, std::int64_t, const float*, const ImageSizes&, Bfloat16*, const ImageSizes&,
                          std::int64_t);
template void move_images(cudaStream_t, std::int64_t, const Bfloat16*, const ImageSizes&, float*, const ImageSizes&,
                          std::int64_t);
template void move_images(cudaStream_t, std::int64_t, const float*, const ImageSizes&, Float16*, const ImageSizes&,
                          std::int64_t);
template void move_images(cudaStream_t, std::int64_t, const Float16*, const ImageSizes&, float*, const ImageSizes&,
                          std::int64_t);
template void pack_weights(cudaStream_t, const WeightSizes&, const float*, float*);
template void pack_weights(cudaStream_t, const WeightSizes&, const float*, Bfloat16*);
template void pack_weights(cudaStream_t, const WeightSizes&, const float*, Float16*);
template void bias_activation(cudaStream_t, Activation, const float*, std::int64_t, const float*, float*, std::int64_t,
                              std::int64_t);
template void bias_activation(cudaStream_t, Activation, const Bfloat16*, std::int64_t, const float*, float*,
                              std::int64_t, std::int64_t);
template void bias_activation(cudaStream_t, Activation, const Float16*, std::int64_t, const float*, float*,
                              std::int64_t, std::int64_t);

}  // namespace finch::backend::cuda
