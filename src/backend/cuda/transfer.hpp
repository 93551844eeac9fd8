#pragma once

#include "finch/backend/cuda_runtime.hpp"
#include "finch/backend/transfer.hpp"

#include <cstddef>
#include <span>

namespace finch::backend::cuda {

/// A transfer that is ordered with the work of `stream`, which must outlive it.
class CudaTransfer : public Transfer {
public:
    /// Throws std::bad_alloc.
    CudaTransfer(cudaStream_t stream, std::size_t floats)
        : stream_(stream), memory_(allocate_pinned(floats * sizeof(float))), arrival_(make_event()) {}
    ~CudaTransfer() override { static_cast<void>(cudaStreamSynchronize(stream_)); }

    void fetch(std::span<const float> from) override {
        count_ = from.size();
        FINCH_CUDA(cudaMemcpyAsync(memory_.get(), from.data(), from.size_bytes(), cudaMemcpyDeviceToHost, stream_));
        FINCH_CUDA(cudaEventRecord(arrival_.get(), stream_));
    }
    [[nodiscard]] bool has_arrived() override {
        const cudaError_t code = cudaEventQuery(arrival_.get());
        if (code == cudaErrorNotReady) {
            return false;
        }
        FINCH_CUDA(code);
        return true;
    }
    [[nodiscard]] std::span<float> host() override { return {static_cast<float*>(memory_.get()), count_}; }
    void put_back(std::span<float> to) override {
        FINCH_CUDA(cudaMemcpyAsync(to.data(), memory_.get(), to.size_bytes(), cudaMemcpyHostToDevice, stream_));
    }

private:
    cudaStream_t stream_;
    PinnedMemory memory_;
    UniqueEvent arrival_;
    std::size_t count_ = 0;
};

}  // namespace finch::backend::cuda
