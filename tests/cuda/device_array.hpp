#pragma once

#include "finch/backend/cuda_runtime.hpp"

#include "support/rehearsal/fibers.hpp"

#include <cstddef>
#include <cuda_runtime.h>
#include <vector>

namespace finch::test {

/// An array in device memory. Copies are synchronous (rehearsal::Execution::at_once). The array starts after `ahead`
/// unused elements, which makes it unaligned.
template <class T>
class DeviceArray {
public:
    explicit DeviceArray(const std::vector<T>& values, std::size_t ahead = 0)
        : size_(values.size()),
          ahead_(ahead),
          memory_(backend::cuda::allocate_device((values.size() + ahead) * sizeof(T))) {
        copy(data(), values.data(), cudaMemcpyHostToDevice);
    }
    [[nodiscard]] T* data() const { return static_cast<T*>(memory_.get()) + ahead_; }
    [[nodiscard]] std::vector<T> values() const {
        std::vector<T> result(size_);
        FINCH_CUDA(cudaDeviceSynchronize());  // waits for all streams
        copy(result.data(), data(), cudaMemcpyDeviceToHost);
        return result;
    }

private:
    void copy(void* to, const void* from, cudaMemcpyKind kind) const {
        if (size_ == 0) {
            return;
        }
        const backend::cuda::UniqueStream stream = backend::cuda::make_stream();
        FINCH_CUDA(cudaMemcpyAsync(to, from, size_ * sizeof(T), kind, stream.get()));
        FINCH_CUDA(cudaStreamSynchronize(stream.get()));
    }

    std::size_t size_;
    std::size_t ahead_;
    backend::cuda::DeviceMemory memory_;
};

/// Returns whether `work` has the same result for three orders in which the threads of a block run. If not, a barrier
/// is missing in a kernel.
template <class Work>
bool same_in_every_order(Work work) {
    using rehearsal::ThreadOrder;
    rehearsal::set_thread_order(ThreadOrder::backward);
    const auto backward = work();
    rehearsal::set_thread_order(ThreadOrder::interleaved);
    const auto interleaved = work();
    rehearsal::set_thread_order(ThreadOrder::forward);
    return work() == backward && backward == interleaved;
}

}  // namespace finch::test
