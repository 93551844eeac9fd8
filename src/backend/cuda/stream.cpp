#include "stream.hpp"

#include "finch/base/log.hpp"

#include "libraries.hpp"
#include "resident_images.hpp"

#include <algorithm>
#include <utility>

namespace finch::backend::cuda {

Shared::Shared(const DeviceFacts& of)
    : facts(of),
      libraries(std::make_unique<Libraries>()),
      plans(std::make_unique<Plans>()),
      sets(std::make_unique<ResidentSets>()) {}
Shared::~Shared() = default;

Stream::Stream(std::shared_ptr<Shared> shared) : shared_(std::move(shared)), stream_(make_stream()) {}

Stream::~Stream() {
    if (const cudaError_t code = cudaStreamSynchronize(stream_.get()); code != cudaSuccess) {
        spdlog::warn("work on {} ended with: {}", facts().name, cudaGetErrorString(code));
        static_cast<void>(cudaGetLastError());
    }
}

DeviceMemory Stream::allocate(std::size_t bytes) {
    DeviceMemory memory = allocate_device(std::max<std::size_t>(bytes, 1));
    FINCH_CUDA(cudaMemsetAsync(memory.get(), 0, bytes, get()));
    return memory;
}

void* Stream::scratch(std::size_t bytes) {
    if (bytes == 0) {
        return nullptr;
    }
    if (bytes > scratch_bytes_) {
        scratch_.push_back(allocate(bytes));
        scratch_bytes_ = bytes;
    }
    return scratch_.back().get();
}

}  // namespace finch::backend::cuda
