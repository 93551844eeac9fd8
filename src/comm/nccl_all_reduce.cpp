#include "finch/base/bytes.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"
#include "finch/base/log.hpp"
#include "finch/comm/all_reduce.hpp"

#include "patience.hpp"

#include <cstring>
#include <cuda_runtime.h>
#include <exception>
#include <nccl.h>
#include <source_location>
#include <utility>

namespace finch::comm {
namespace {

void check(cudaError_t code, const char* call, std::source_location where) {
    if (code != cudaSuccess) {
        throw ApiError(fmt::format("{}:{}: {}: {}", where.file_name(), where.line(), call, cudaGetErrorString(code)));
    }
}
#define FINCH_CUDA(call) check((call), #call, std::source_location::current())

struct StreamTraits {
    using type = cudaStream_t;
    static type null() noexcept { return nullptr; }
    static void destroy(type stream) noexcept { static_cast<void>(cudaStreamDestroy(stream)); }
};
struct EventTraits {
    using type = cudaEvent_t;
    static type null() noexcept { return nullptr; }
    static void destroy(type event) noexcept { static_cast<void>(cudaEventDestroy(event)); }
};

UniqueHandle<EventTraits> make_event() {
    cudaEvent_t event = nullptr;
    FINCH_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return UniqueHandle<EventTraits>(event);
}

/// A communicator that never blocks the host for longer than its deadline. Once something has failed it is aborted, and
/// every use of it throws.
class NcclAllReduce : public AllReduce {
public:
    NcclAllReduce(const Group& group, backend::Device& device, double timeout_seconds)
        : group_(group),
          device_stream_(static_cast<cudaStream_t>(device.stream())),
          timeout_seconds_(timeout_seconds),
          exceptions_(std::uncaught_exceptions()),
          fork_(make_event()),
          join_(make_event()) {
        cudaStream_t stream = nullptr;
        FINCH_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        stream_.reset(stream);
        connect();
    }

    ~NcclAllReduce() override {
        if (communicator_ == nullptr) {
            return;
        }
        if (std::uncaught_exceptions() > exceptions_) {
            static_cast<void>(ncclCommAbort(communicator_));  // the peers may not come
            return;
        }
        try {
            finish(ncclCommFinalize(communicator_), "ncclCommFinalize");
            static_cast<void>(ncclCommDestroy(communicator_));
        } catch (const Error& error) {
            spdlog::warn("{}", error.what());
        }
    }

    [[nodiscard]] std::string name() const override { return "nccl"; }
    [[nodiscard]] bool is_in_line() const override { return true; }

    void start(std::span<float> bucket) override {
        require_usable();
        FINCH_CUDA(cudaEventRecord(fork_.get(), device_stream_));
        FINCH_CUDA(cudaStreamWaitEvent(stream_.get(), fork_.get(), 0));
        finish(ncclAllReduce(bucket.data(), bucket.data(), bucket.size(), ncclFloat, ncclSum, communicator_,
                             stream_.get()),
               "ncclAllReduce");
        started_ = true;
    }

    void progress() override {}

    void wait() override {
        if (std::exchange(started_, false)) {
            FINCH_CUDA(cudaEventRecord(join_.get(), stream_.get()));
            FINCH_CUDA(cudaStreamWaitEvent(device_stream_, join_.get(), 0));
        }
    }

    void settle() override {
        require_usable();
        Patience patience(timeout_seconds_);
        for (;;) {
            const cudaError_t code = cudaStreamQuery(device_stream_);
            if (code == cudaSuccess) {
                return;
            }
            if (code != cudaErrorNotReady) {
                fail("the gradients' sums", cudaGetErrorString(code));
            }
            ncclResult_t state = ncclSuccess;
            static_cast<void>(ncclCommGetAsyncError(communicator_, &state));
            if (state != ncclSuccess && state != ncclInProgress) {
                fail("the gradients' sums", ncclGetErrorString(state));
            }
            if (patience.is_over()) {
                fail("the gradients' sums", "another rank does not come");
            }
        }
    }

private:
    /// Collective over the worker. NCCL's words travel by MPI, host memory only.
    void connect() {
        ncclUniqueId id;
        Bytes bytes;
        if (group_.is_leader()) {
            if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess) {
                throw Error(fmt::format("ncclGetUniqueId: {}", ncclGetErrorString(result)));
            }
            bytes.resize(sizeof id);
            std::memcpy(bytes.data(), &id, sizeof id);
        }
        group_.broadcast(bytes);
        static_cast<void>(group_.maximum(0));  // everybody has it before anybody waits within NCCL
        if (bytes.size() != sizeof id) {
            throw Error("the worker's ranks run different versions of NCCL");
        }
        std::memcpy(&id, bytes.data(), sizeof id);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        config.commName = "finch";
        finish(ncclCommInitRankConfig(&communicator_, group_.size(), id, group_.rank(), &config),
               "ncclCommInitRankConfig");
    }

    void require_usable() const {
        if (communicator_ == nullptr) {
            throw Error(fmt::format("rank {} of {} of this worker: NCCL's communicator was given up after a failure",
                                    group_.rank(), group_.size()));
        }
    }

    /// A call on a communicator that does not block may still be under way when it returns.
    void finish(ncclResult_t result, const char* call) {
        Patience patience(timeout_seconds_);
        while (result == ncclInProgress) {
            if (communicator_ == nullptr || ncclCommGetAsyncError(communicator_, &result) != ncclSuccess) {
                break;
            }
            if (result == ncclInProgress && patience.is_over()) {
                fail(call, "another rank does not come");
            }
        }
        if (result != ncclSuccess) {
            fail(call, ncclGetErrorString(result));
        }
    }

    /// Gives the communicator up on this rank; the others see it by their own deadlines.
    [[noreturn]] void fail(const char* what, const char* why) {
        std::string last;
        if (communicator_ != nullptr) {
            const char* words = ncclGetLastError(communicator_);
            last = words != nullptr && *words != '\0' ? fmt::format(" ({})", words) : "";
            static_cast<void>(ncclCommAbort(std::exchange(communicator_, nullptr)));
        }
        throw Error(fmt::format(
            "rank {} of {} of this worker: {}: {}{}, with a deadline of {} s (workers.timeout_seconds). What helps: "
            "NCCL_DEBUG=INFO tells more; NCCL_SOCKET_IFNAME names the network; workers.communicator: staged does "
            "without NCCL",
            group_.rank(), group_.size(), what, why, last, timeout_seconds_));
    }

    const Group& group_;
    cudaStream_t device_stream_;
    double timeout_seconds_;
    int exceptions_;  ///< in flight when it was made
    UniqueHandle<StreamTraits> stream_;
    UniqueHandle<EventTraits> fork_;
    UniqueHandle<EventTraits> join_;
    ncclComm_t communicator_ = nullptr;
    bool started_ = false;  ///< sums that wait() has not ordered before the device's work
};

}  // namespace

bool has_nccl() noexcept {
    return true;
}

std::unique_ptr<AllReduce> make_nccl_all_reduce(const Group& group, backend::Device& device, double timeout_seconds) {
    return std::make_unique<NcclAllReduce>(group, device, timeout_seconds);
}

}  // namespace finch::comm
