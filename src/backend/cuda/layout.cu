#include "finch/backend/cuda_runtime.hpp"

#include "grid.hpp"
#include "kernels/layout.hpp"
#include "layout.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace finch::backend::cuda {
namespace {

/// Returns a cut with enough parts to fill a GPU, but so few that one thread can add their sums.
RowCut cut_bias(std::int64_t rows, std::int64_t channels, int width) {
    return cut_rows(rows, channels, width, 4, groups_of(256, groups_of(channels, std::int64_t{32} * width)));
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

template <class From, class To>
void bias_activation(cudaStream_t stream, Activation activation, const From* from, std::int64_t channels_from,
                     const float* bias, To* y, std::int64_t rows, std::int64_t channels) {
    const auto launch_with = [&]<int width>(std::integral_constant<int, width>) {
        FINCH_CUDA(launch(stream, grid_for(rows * channels / width),
                          BiasActivation<From, To, width>{.activation = activation,
                                                          .from = from,
                                                          .bias = bias,
                                                          .y = y,
                                                          .rows = rows,
                                                          .channels_from = channels_from,
                                                          .channels = channels}));
    };
    constexpr int wide = sizeof(To) == sizeof(float) ? 4 : 8;
    if (channels % wide == 0 && channels_from % wide == 0 && is_aligned(from) && is_aligned(y)) {
        launch_with(std::integral_constant<int, wide>{});
    } else {
        launch_with(std::integral_constant<int, 1>{});
    }
}

template <class Number>
PartialSums bias_gradient(cudaStream_t stream, Activation activation, const Number* y, Number* grad, std::int64_t rows,
                          std::int64_t channels, float* partial, float* sums) {
    constexpr int width = width_of<Number>;
    const RowCut cut = cut_bias(rows, channels, width);
    Grid grid = cut.grid(rows, width);
    grid.shared_bytes = static_cast<std::size_t>(grid.threads * width) * sizeof(float);
    FINCH_CUDA(
        launch(stream, grid,
               BiasGradientPart<Number, width>{
                   .activation = activation, .y = y, .grad = grad, .cut = cut, .rows = rows, .partial = partial}));
    return {
        .partial = partial, .rows = static_cast<int>(grid.blocks_y), .count = static_cast<int>(channels), .sums = sums};
}

std::size_t bias_gradient_partials(std::int64_t rows, std::int64_t channels) {
    const auto parts = [&](int width) { return cut_bias(rows, channels, width).grid(rows, width).blocks_y; };
    return static_cast<std::size_t>(std::max(parts(1), parts(8)) * channels) * sizeof(float);
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
template void bias_activation(cudaStream_t, Activation, const float*, std::int64_t, const float*, float*, std::int64_t,
                              std::int64_t);
template void bias_activation(cudaStream_t, Activation, const float*, std::int64_t, const float*, Bfloat16*,
                              std::int64_t, std::int64_t);
template void bias_activation(cudaStream_t, Activation, const Bfloat16*, std::int64_t, const float*, float*,
                              std::int64_t, std::int64_t);
template void bias_activation(cudaStream_t, Activation, const Bfloat16*, std::int64_t, const float*, Bfloat16*,
                              std::int64_t, std::int64_t);
template void bias_activation(cudaStream_t, Activation, const Float16*, std::int64_t, const float*, float*,
                              std::int64_t, std::int64_t);
template PartialSums bias_gradient(cudaStream_t, Activation, const float*, float*, std::int64_t, std::int64_t, float*,
                                   float*);
template PartialSums bias_gradient(cudaStream_t, Activation, const Bfloat16*, Bfloat16*, std::int64_t, std::int64_t,
                                   float*, float*);

}  // namespace finch::backend::cuda
