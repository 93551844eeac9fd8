#include "finch/backend/cuda_runtime.hpp"

#include "grid.hpp"
#include "kernels/layout.hpp"
#include "layout.hpp"
#include "number_of.hpp"

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

/// Calls `use` with the numbers of both tensors, at least one of which is float32.
template <class Use>
void with_numbers(const Source& from, const Target& to, Use use) {
    with_any_number(from.type, [&](auto number) {
        using From = typename decltype(number)::type;
        const auto* numbers = static_cast<const From*>(from.data);
        if constexpr (std::is_same_v<From, float>) {
            with_any_number(to.type,
                            [&](auto result) { use(numbers, static_cast<typename decltype(result)::type*>(to.data)); });
        } else {
            use(numbers, static_cast<float*>(to.data));
        }
    });
}

}  // namespace

void copy_channels(cudaStream_t stream, const Source& from, std::int64_t rows, std::int64_t channels_from,
                   const Target& to, std::int64_t channels_to) {
    with_numbers(from, to, [&]<class From, class To>(const From* numbers, To* result) {
        const std::int64_t count = rows * channels_to;
        if constexpr (!std::is_same_v<From, To>) {
            using Convert = ConvertNumbers<From, To>;
            if (channels_from == channels_to && count % Convert::width == 0 && is_aligned(numbers) &&
                is_aligned(result)) {
                FINCH_CUDA(launch(stream, grid_for(count / Convert::width),
                                  Convert{.from = numbers, .to = result, .count = count}));
                return;
            }
        }
        FINCH_CUDA(launch(stream, grid_for(count),
                          CopyChannels<From, To>{.from = numbers,
                                                 .to = result,
                                                 .rows = rows,
                                                 .channels_from = channels_from,
                                                 .channels_to = channels_to}));
    });
}

void move_images(cudaStream_t stream, std::int64_t batch, const Source& from, const ImageSizes& from_sizes,
                 const Target& to, const ImageSizes& to_sizes, std::int64_t down) {
    with_numbers(from, to, [&]<class From, class To>(const From* numbers, To* result) {
        FINCH_CUDA(launch(stream, grid_for(batch * to_sizes.height * to_sizes.width * to_sizes.channels),
                          MoveImages<From, To>{.from = numbers,
                                               .to = result,
                                               .batch = batch,
                                               .height = from_sizes.height,
                                               .width = from_sizes.width,
                                               .channels = from_sizes.channels,
                                               .height_to = to_sizes.height,
                                               .width_to = to_sizes.width,
                                               .channels_to = to_sizes.channels,
                                               .down = down}));
    });
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

void bias_activation(cudaStream_t stream, Activation activation, const Source& from, std::int64_t channels_from,
                     const float* bias, const Target& y, std::int64_t rows, std::int64_t channels) {
    const auto compute = [&]<class From, class To>(const From* numbers, To* result) {
        const auto compute_wide = [&]<int width>(std::integral_constant<int, width>) {
            FINCH_CUDA(launch(stream, grid_for(rows * channels / width),
                              BiasActivation<From, To, width>{.activation = activation,
                                                              .from = numbers,
                                                              .bias = bias,
                                                              .y = result,
                                                              .rows = rows,
                                                              .channels_from = channels_from,
                                                              .channels = channels}));
        };
        constexpr int wide = sizeof(To) == sizeof(float) ? 4 : 8;
        if (channels % wide == 0 && channels_from % wide == 0 && is_aligned(numbers) && is_aligned(result)) {
            compute_wide(std::integral_constant<int, wide>());
        } else {
            compute_wide(std::integral_constant<int, 1>());
        }
    };
    with_any_number(from.type, [&](auto number) {
        using From = typename decltype(number)::type;
        const auto* numbers = static_cast<const From*>(from.data);
        if constexpr (std::is_same_v<From, __half>) {
            compute(numbers, static_cast<float*>(y.data));
        } else {
            with_number(y.type,
                        [&](auto result) { compute(numbers, static_cast<typename decltype(result)::type*>(y.data)); });
        }
    });
}

PartialSums bias_gradient(cudaStream_t stream, Activation activation, const Source& y, const Target& grad,
                          std::int64_t rows, std::int64_t channels, float* partial, float* sums) {
    return with_number(y.type, [&](auto number) -> PartialSums {
        using Number = typename decltype(number)::type;
        constexpr int width = width_of<Number>;
        const RowCut cut = cut_bias(rows, channels, width);
        Grid grid = cut.grid(rows, width);
        grid.shared_bytes = static_cast<std::size_t>(grid.threads * width) * sizeof(float);
        FINCH_CUDA(launch(stream, grid,
                          BiasGradientPart<Number, width>{.activation = activation,
                                                          .y = static_cast<const Number*>(y.data),
                                                          .grad = static_cast<Number*>(grad.data),
                                                          .cut = cut,
                                                          .rows = rows,
                                                          .partial = partial}));
        return {.partial = partial,
                .rows = static_cast<int>(grid.blocks_y),
                .count = static_cast<int>(channels),
                .sums = sums};
    });
}

std::size_t bias_gradient_partials(std::int64_t rows, std::int64_t channels) {
    const auto parts = [&](int width) { return cut_bias(rows, channels, width).grid(rows, width).blocks_y; };
    return static_cast<std::size_t>(std::max(parts(1), parts(8)) * channels) * sizeof(float);
}

}  // namespace finch::backend::cuda
