#include "stream.hpp"

#include "finch/base/log.hpp"

#include "gang.hpp"
#include "libraries.hpp"
#include "resident_images.hpp"

#include <utility>

namespace finch::backend::cuda {

Shared::Shared(const DeviceFacts& of)
    : facts(of),
      libraries(std::make_unique<Libraries>()),
      sets(std::make_unique<ResidentSets>()),
      gangs(std::make_unique<Gangs>()),
      pool(std::make_shared<MemoryPool>(of.index, of.ranks)),
      pinned(std::make_shared<PinnedPool>()) {}
Shared::~Shared() = default;

Stream::Stream(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)),
      own_(std::make_shared<const StreamAndPool>(StreamAndPool{make_stream(), shared_->pool})) {}

Stream::~Stream() {
    if (const cudaError_t code = cudaStreamSynchronize(own_->stream.get()); code != cudaSuccess) {
        spdlog::warn("work on {} ended with: {}", facts().name, cudaGetErrorString(code));
        static_cast<void>(cudaGetLastError());
    }
    if (shared_->cooperating == this) {
        shared_->cooperating = nullptr;
    }
}

bool Stream::may_cooperate() {
    if (shared_->cooperating == nullptr && facts().can_cooperate && facts().ranks == 1) {
        shared_->cooperating = this;
    }
    return shared_->cooperating == this;
}

cudaStream_t Stream::get() const {
    if (launch_before_next_) {
        std::exchange(launch_before_next_, nullptr)();
    }
    return own_->stream.get();
}

StreamMemory Stream::allocate(std::size_t bytes) {
    StreamMemory memory(shared_->pool->allocate(bytes, own_->stream.get()), {own_});
    FINCH_CUDA(cudaMemsetAsync(memory.get(), 0, bytes, get()));
    return memory;
}

PinnedPiece Stream::allocate_pinned(std::size_t bytes) {
    return shared_->pinned->take(bytes);
}

std::shared_ptr<const Scratch> Stream::scratch(std::size_t bytes) {
    std::shared_ptr<Scratch> scratch = scratch_.lock();
    if (!scratch) {
        scratch = std::make_shared<Scratch>();
        scratch_ = scratch;
    }
    if (bytes > scratch->bytes_) {
        if (std::exchange(scratch->is_captured_, false)) {
            scratch->captured_.push_back(std::move(scratch->memory_));
        }
        scratch->bytes_ = 0;
        scratch->memory_ = {};  // first, so that both need not exist at the same time
        scratch->memory_ = allocate(bytes);
        scratch->bytes_ = bytes;
    }
    return scratch;
}

void Stream::keep_scratch() {
    if (const std::shared_ptr<Scratch> scratch = scratch_.lock()) {
        scratch->is_captured_ = true;
    }
}

std::size_t Stream::free_bytes() const {
    FINCH_CUDA(cudaStreamSynchronize(own_->stream.get()));  // memory freed on the stream then counts as free
    std::size_t free = 0;
    std::size_t total = 0;
    FINCH_CUDA(cudaMemGetInfo(&free, &total));
    return free + shared_->pool->unused_bytes();
}

}  // namespace finch::backend::cuda
