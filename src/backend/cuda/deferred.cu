#include "finch/backend/cuda_runtime.hpp"

#include "deferred.hpp"
#include "grid.hpp"
#include "kernels/deferred.hpp"
#include "operations.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace finch::backend::cuda {
namespace {

/// Calls `launch_some` with at most `most` consecutive elements at a time.
template <class Element, class Launch>
void for_pieces(std::span<const Element> all, int most, Launch launch_some) {
    for (; !all.empty(); all = all.subspan(std::min<std::size_t>(all.size(), static_cast<std::size_t>(most)))) {
        launch_some(all.first(std::min<std::size_t>(all.size(), static_cast<std::size_t>(most))));
    }
}

/// Launches a kernel for all copies of the type of `Packed`.
template <class Packed>
void copy_weights(cudaStream_t stream, std::span<const WeightCopy> all, TensorType type, bool unpacks) {
    std::vector<WeightCopy> of_type;
    std::copy_if(all.begin(), all.end(), std::back_inserter(of_type), [&](const auto& of) { return of.type == type; });
    using Kernel = CopyWeights<Packed>;
    for_pieces(std::span<const WeightCopy>(of_type), Kernel::most_layers, [&](std::span<const WeightCopy> layers) {
        Kernel kernel{.layers = {}, .unpacks = unpacks};
        std::copy(layers.begin(), layers.end(), kernel.layers);
        std::int64_t most = 0;
        for (const WeightCopy& of : layers) {
            most = std::max(most, of.packed_count());
        }
        Grid grid = grid_for(most);
        grid.blocks_x = std::min<std::int64_t>(grid.blocks_x, 512);  // the blocks of small layers end immediately
        grid.blocks_y = static_cast<std::int64_t>(layers.size());
        FINCH_CUDA(launch(stream, grid, kernel));
    });
}

}  // namespace

void add_partials(cudaStream_t stream, std::span<const PartialSums> layers) {
    for_pieces(layers, AddPartials::most_layers, [&](std::span<const PartialSums> some) {
        AddPartials kernel{};
        std::copy(some.begin(), some.end(), kernel.layers);
        int most = 0;
        for (const PartialSums& of : some) {
            most = std::max(most, of.count);
        }
        FINCH_CUDA(launch(stream,
                          {.blocks_x = groups_of(most, 32),
                           .blocks_y = static_cast<std::int64_t>(some.size()),
                           .threads = AddPartials::max_threads,
                           .shared_bytes = AddPartials::shared_floats * sizeof(float)},
                          kernel));
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
