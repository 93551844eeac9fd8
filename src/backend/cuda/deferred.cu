#include "finch/backend/cuda_runtime.hpp"

#include "deferred.hpp"
#include "grid.hpp"
#include "kernel_launch.hpp"
#include "kernels/division.hpp"
#include "kernels/numbers.hpp"
#include "operations.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace finch::backend::cuda {
namespace {

/// The last kernel for gradients of weights and biases. Adds the rows of the partial sums of several layers, always
/// in the same order. Grid: x = groups of 32 sums, as many as the largest layer has; y = layers. The number of threads
/// must be max_threads.
struct AddPartials {
    static constexpr int max_threads = 256;
    static constexpr int sharers = max_threads / 32;  ///< threads that share a sum
    static constexpr int shared_floats = max_threads;
    static constexpr int most_layers = 16;
    PartialSums layers[most_layers];

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const PartialSums& of = layers[thread.block_y()];
        auto* shared = thread.template shared<float>();  // (sharers, 32)
        const int i = thread.block_x() * 32 + thread.index() % 32;
        float sum = 0.0F;
        if (i < of.count) {
            for (int row = thread.index() / 32; row < of.rows; row += sharers) {
                sum += of.partial[static_cast<std::size_t>(row) * static_cast<std::size_t>(of.count) +
                                  static_cast<std::size_t>(i)];
            }
        }
        shared[thread.index()] = sum;
        thread.sync();
        if (thread.index() < 32 && i < of.count) {
            float total = 0.0F;
            for (int sharer = 0; sharer < sharers; ++sharer) {
                total += shared[sharer * 32 + thread.index()];
            }
            of.sums[i] = total;
        }
    }
};

/// The kernel that packs the weights of several layers or, if `unpacks`, does the inverse. Grid: x = grid_for() of the
/// largest packed layer; y = layers.
template <class Packed>
struct CopyWeights {
    static constexpr int max_threads = 256;
    static constexpr int most_layers = 16;
    WeightCopy layers[most_layers];
    bool unpacks;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const WeightCopy& of = layers[thread.block_y()];
        for (std::int64_t i = thread.global_index(); i < of.packed_count(); i += thread.global_count()) {
            const MatrixPlace in(i, of.padded_in);
            const MatrixPlace out(in.row, of.taps);
            const bool there = in.column < of.channels_in && out.row < of.channels_out;
            const std::int64_t at = (out.row * of.channels_in + in.column) * of.taps + out.column;  // canonical
            if (!unpacks) {
                const float weight = there ? static_cast<const float*>(of.from)[at] : 0.0F;
                static_cast<Packed*>(of.to)[i] = static_cast<Packed>(weight);
            } else if (there) {
                static_cast<float*>(of.to)[at] = static_cast<float>(static_cast<const Packed*>(of.from)[i]);
            }
        }
    }
};

/// Launches `kernel`, whose layers are not set, for at most most_layers layers at a time. `count(layer)` are the
/// elements of a layer, and `grid_of(elements)` is the grid of the largest layer.
template <class Kernel, class Layer, class Count, class GridOf>
void launch_for_layers(cudaStream_t stream, Kernel kernel, std::span<const Layer> all, Count count, GridOf grid_of) {
    while (!all.empty()) {
        const auto layers = all.first(std::min(all.size(), std::size_t{Kernel::most_layers}));
        std::copy(layers.begin(), layers.end(), kernel.layers);
        std::int64_t most = 0;
        for (const Layer& of : layers) {
            most = std::max(most, count(of));
        }
        Grid grid = grid_of(most);
        grid.blocks_y = static_cast<std::int64_t>(layers.size());
        FINCH_CUDA(launch(stream, grid, kernel));
        all = all.subspan(layers.size());
    }
}

/// Copies the weights of the type of `Packed`.
template <class Packed>
void copy_weights(cudaStream_t stream, std::span<const WeightCopy> all, TensorType type, bool unpacks) {
    std::vector<WeightCopy> of_type;
    std::copy_if(all.begin(), all.end(), std::back_inserter(of_type), [&](const auto& of) { return of.type == type; });
    launch_for_layers(
        stream, CopyWeights<Packed>{.layers = {}, .unpacks = unpacks}, std::span<const WeightCopy>(of_type),
        [](const WeightCopy& of) { return of.packed_count(); },
        [](std::int64_t most) {
            Grid grid = grid_for(most);
            grid.blocks_x = std::min<std::int64_t>(grid.blocks_x, 512);  // the blocks of small layers end immediately
            return grid;
        });
}

}  // namespace

void add_partials(cudaStream_t stream, std::span<const PartialSums> layers) {
    launch_for_layers(
        stream, AddPartials{}, layers, [](const PartialSums& of) { return std::int64_t{of.count}; },
        [](std::int64_t most) {
            return Grid{.blocks_x = groups_of(most, 32),
                        .threads = AddPartials::max_threads,
                        .shared_bytes = AddPartials::shared_floats * sizeof(float)};
        });
}

void pack_weights(cudaStream_t stream, std::span<const WeightCopy> layers) {
    copy_weights<float>(stream, layers, TensorType::float32, false);
    copy_weights<__nv_bfloat16>(stream, layers, TensorType::bfloat16, false);
    copy_weights<__half>(stream, layers, TensorType::float16, false);
}

void unpack_weights(cudaStream_t stream, std::span<const WeightCopy> layers) {
    copy_weights<float>(stream, layers, TensorType::float32, true);
    copy_weights<__nv_bfloat16>(stream, layers, TensorType::bfloat16, true);
}

void Deferred::forget(const void* memory) {
    std::erase_if(sums, [=](const PartialSums& of) { return of.partial == memory; });
    for (std::vector<WeightCopy>* copies : {&packed, &unpacked}) {
        std::erase_if(*copies, [=](const WeightCopy& of) { return of.from == memory || of.to == memory; });
    }
}

void finish_packing(Stream& stream) {
    const cudaStream_t on = stream.get();  // first, because it can enqueue other work
    pack_weights(on, std::exchange(stream.deferred().packed, {}));
}

void finish_deferred(Stream& stream) {
    finish_packing(stream);
    const cudaStream_t on = stream.get();
    unpack_weights(on, std::exchange(stream.deferred().unpacked, {}));
    add_partials(on, std::exchange(stream.deferred().sums, {}));
}

}  // namespace finch::backend::cuda
