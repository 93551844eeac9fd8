#pragma once

#include "finch/backend/operation.hpp"
#include "finch/base/portable.hpp"

#include <cstdint>
#include <cuda_runtime.h>
#include <span>
#include <vector>

// Work that operations leave to finish_deferred() (operations.hpp), so that one kernel does it for several layers. The
// functions enqueue work on `stream`, and throw ApiError if CUDA rejects a launch.
namespace finch::backend::cuda {

/// Partial sums of gradients, in device memory: the sums of the rows of `partial` (rows, count) are the gradients
/// `sums` (count).
struct PartialSums {
    const float* partial = nullptr;
    int rows = 0;
    int count = 0;
    float* sums = nullptr;
};
/// Adds the rows, always in the same order.
void add_partials(cudaStream_t stream, std::span<const PartialSums> layers);

/// The weights of a convolution in two forms: canonical (channels_out, channels_in, taps) in float32, with taps =
/// kernel², and packed (padded_out, taps, padded_in) for libraries that use NHWC.
struct WeightCopy {
    std::int64_t channels_out = 1;
    std::int64_t channels_in = 1;  ///< of a group
    std::int64_t taps = 1;
    std::int64_t padded_out = 1;  ///< at least channels_out
    std::int64_t padded_in = 1;   ///< at least channels_in
    const void* from = nullptr;
    void* to = nullptr;
    TensorType type = TensorType::float32;  ///< of the packed weights

    [[nodiscard]] FINCH_PORTABLE std::int64_t packed_count() const { return padded_out * taps * padded_in; }
};
/// Packs canonical weights. The padding becomes zero.
void pack_weights(cudaStream_t stream, std::span<const WeightCopy> layers);
/// Unpacks gradients of weights, which are never float16.
void unpack_weights(cudaStream_t stream, std::span<const WeightCopy> layers);

/// The work of a stream that is not yet enqueued.
struct Deferred {
    std::vector<PartialSums> sums;
    std::vector<WeightCopy> packed, unpacked;

    /// Drops work that reads or writes `memory`.
    void forget(const void* memory);
};

}  // namespace finch::backend::cuda
