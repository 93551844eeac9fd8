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

std::int64_t packed_count(const WeightCopy& of) {
    return of.padded_out * of.taps * of.padded_in;
}
std::int64_t canonical_count(const WeightCopy& of) {
    return of.channels_out * of.taps * of.channels_in;
}

/// Launches a kernel for all copies of the type `type`.
template <class Kernel>
void copy_weights(cudaStream_t stream, std::span<const WeightCopy> all, TensorType type,
                  std::int64_t (*count)(const WeightCopy&)) {
    std::vector<WeightCopy> of_type;
    std::copy_if(all.begin(), all.end(), std::back_inserter(of_type), [&](const auto& of) { return of.type == type; });
    for_pieces(std::span<const WeightCopy>(of_type), Kernel::most_layers, [&](std::span<const WeightCopy> layers) {
        Kernel kernel{};
        std::copy(layers.begin(), layers.end(), kernel.layers);
        std::int64_t most = 0;
        for (const WeightCopy& of : layers) {
            most = std::max(most, count(of));
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
    copy_weights<PackWeights<float>>(stream, layers, TensorType::float32, packed_count);
    copy_weights<PackWeights<__nv_bfloat16>>(stream, layers, TensorType::bfloat16, packed_count);
    copy_weights<PackWeights<__half>>(stream, layers, TensorType::float16, packed_count);
}

void unpack_weights(cudaStream_t stream, std::span<const WeightCopy> layers) {
    copy_weights<UnpackWeights<float>>(stream, layers, TensorType::float32, canonical_count);
    copy_weights<UnpackWeights<__nv_bfloat16>>(stream, layers, TensorType::bfloat16, canonical_count);
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
