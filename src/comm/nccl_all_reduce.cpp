#include "finch/backend/cuda_runtime.hpp"
#include "finch/base/bytes.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/comm/version.hpp"

#include "deadline.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <nccl.h>
#include <thread>
#include <utility>

namespace finch::comm {
namespace {

using backend::cuda::make_event;
using backend::cuda::make_stream;
using backend::cuda::UniqueEvent;
using backend::cuda::UniqueStream;

/// Disables NVLS (sums in NVLink switches), because NVLS adds in a varying order. NCCL reads its environment once, so
/// this function must be called before the first call of NCCL. Does not change settings of the user.
void ask_for_the_same_bits() {
    if (std::getenv("NCCL_ALGO") == nullptr) {
        ::setenv("NCCL_NVLS_ENABLE", "0", 0);
    }
}

/// The NCCL communicator of a worker's ranks. No call blocks the host for longer than the deadline. After a failure the
/// communicator is aborted, and every use of it throws.
class NcclCommunicator {
public:
    NcclCommunicator(const Group& group, double timeout_seconds)
        : group_(group), timeout_seconds_(timeout_seconds), exceptions_(std::uncaught_exceptions()) {}
    NcclCommunicator(const NcclCommunicator&) = delete;
    NcclCommunicator& operator=(const NcclCommunicator&) = delete;

    [[nodiscard]] int size() const { return group_.size(); }

    /// Every graph that contains sums of this communicator must be destroyed before the communicator.
    ~NcclCommunicator() {
        if (std::uncaught_exceptions() > exceptions_) {
            give_up();  // peers may be missing
        } else if (communicator_ != nullptr) {
            try {
                finish(ncclCommFinalize(communicator_), "ncclCommFinalize");
                static_cast<void>(ncclCommDestroy(std::exchange(communicator_, nullptr)));
            } catch (const Error& error) {
                spdlog::warn("{}", error.what());
            }
        }
        if (abort_.valid() && abort_.wait_for(abort_time) != std::future_status::ready) {
            spdlog::warn("rank {} of {} of this worker: NCCL's communicator does not end", group_.rank(),
                         group_.size());
        }
    }

    /// Collective over the worker.
    void connect() {
        ask_for_the_same_bits();
        static_cast<void>(group_.maximum(0));  // with a deadline, so that all ranks are there for the broadcast
        ncclUniqueId id;
        Bytes bytes;
        if (group_.is_leader()) {
            if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess) {
                throw Error(
                    fmt::format("ncclGetUniqueId: {} ({})", ncclGetErrorString(result), ncclGetLastError(nullptr)));
            }
            bytes.resize(sizeof id);
            std::memcpy(bytes.data(), &id, sizeof id);
        }
        group_.broadcast(bytes);
        static_cast<void>(group_.maximum(0));  // all ranks have the id before any rank waits in NCCL
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

    /// Collective over the worker. Enqueues the sum on `stream`.
    template <class Number>
    void sum(std::span<Number> values, cudaStream_t stream) {
        require_usable();
        const ncclDataType_t type = std::is_same_v<Number, double> ? ncclDouble : ncclFloat;
        finish(ncclAllReduce(values.data(), values.data(), values.size(), type, ncclSum, communicator_, stream),
               "ncclAllReduce");
    }

    /// Waits until `stream` has completed all work.
    void synchronize(cudaStream_t stream) {
        constexpr const char* what = "the gradients' sums";
        require_usable();
        Deadline deadline(timeout_seconds_);
        for (;;) {
            const cudaError_t code = cudaStreamQuery(stream);
            if (code == cudaSuccess) {
                return;
            }
            if (code != cudaErrorNotReady) {
                fail(what, cudaGetErrorString(code));
            }
            ncclResult_t state = ncclSuccess;
            static_cast<void>(ncclCommGetAsyncError(communicator_, &state));
            if (state != ncclSuccess && state != ncclInProgress) {
                fail(what, ncclGetErrorString(state));
            }
            if (deadline.is_over()) {
                fail(what, "another rank does not come");
            }
        }
    }

    void require_usable() const {
        if (communicator_ == nullptr) {
            throw Error(fmt::format("rank {} of {} of this worker: NCCL's communicator was given up after a failure",
                                    group_.rank(), group_.size()));
        }
    }

    /// Calls ncclCommAbort in another thread. ncclCommAbort ends the kernels immediately, but returns only after all
    /// graphs with sums of the communicator are destroyed. The calling thread is about to destroy these graphs, so it
    /// must not wait for ncclCommAbort.
    void give_up() noexcept {
        if (communicator_ != nullptr) {
            std::packaged_task<void()> abort([communicator = std::exchange(communicator_, nullptr)] {
                static_cast<void>(ncclCommAbort(communicator));
            });
            abort_ = abort.get_future();
            std::thread(std::move(abort)).detach();
        }
    }

private:
    static constexpr std::chrono::seconds abort_time{10};  ///< it usually takes some milliseconds

    /// Waits until a call is complete, because calls on a nonblocking communicator may return earlier.
    void finish(ncclResult_t result, const char* call) {
        Deadline deadline(timeout_seconds_);
        while (result == ncclInProgress) {
            if (communicator_ == nullptr || ncclCommGetAsyncError(communicator_, &result) != ncclSuccess) {
                break;
            }
            if (result == ncclInProgress && deadline.is_over()) {
                fail(call, "another rank does not come");
            }
        }
        if (result != ncclSuccess) {
            fail(call, ncclGetErrorString(result));
        }
    }

    /// Aborts the communicator on this rank. The other ranks notice the failure when their own deadlines expire.
    [[noreturn]] void fail(const char* what, const char* why) {
        const char* words = ncclGetLastError(communicator_);
        const std::string last = words != nullptr && *words != '\0' ? fmt::format(" ({})", words) : "";
        give_up();
        throw Error(fmt::format(
            "rank {} of {} of this worker: {}: {}{}, with a deadline of {} s (workers.timeout_seconds). What helps: "
            "NCCL_DEBUG=INFO tells more; NCCL_SOCKET_IFNAME names the network; workers.communicator: staged does "
            "without NCCL, as two ranks on one GPU must",
            group_.rank(), group_.size(), what, why, last, timeout_seconds_));
    }

    const Group& group_;
    double timeout_seconds_;
    int exceptions_;  ///< uncaught exceptions at construction
    ncclComm_t communicator_ = nullptr;
    std::future<void> abort_;
};

/// Sums on a separate CUDA stream that forks from the device's stream and joins it again, with and without graph
/// capture.
class NcclAllReduce : public AllReduce {
public:
    NcclAllReduce(const Group& group, backend::Device& device, double timeout_seconds)
        : device_stream_(static_cast<cudaStream_t>(device.stream())),
          stream_(make_stream()),
          fork_(make_event()),
          join_(make_event()),
          communicator_(group, timeout_seconds) {
        communicator_.connect();
    }

    /// NCCL requires that a sum is captured on all ranks or on none.
    [[nodiscard]] backend::CaptureAs capture_as() const override {
        return communicator_.size() == 1 ? backend::CaptureAs::graph : backend::CaptureAs::graph_or_error;
    }

    void start(std::span<float> bucket) override { fork(bucket); }

    /// All sums use one stream, so that NCCL sees them in the same order on every rank.
    void sum(std::span<double> values) override {
        fork(values);
        wait();
    }

    void progress() override {}

    void wait() override {
        if (std::exchange(started_, false)) {
            FINCH_CUDA(cudaEventRecord(join_.get(), stream_.get()));
            FINCH_CUDA(cudaStreamWaitEvent(device_stream_, join_.get(), 0));
        }
    }

    void synchronize() override { communicator_.synchronize(device_stream_); }
    void give_up() noexcept override { communicator_.give_up(); }

private:
    template <class Number>
    void fork(std::span<Number> values) {
        communicator_.require_usable();
        FINCH_CUDA(cudaEventRecord(fork_.get(), device_stream_));
        FINCH_CUDA(cudaStreamWaitEvent(stream_.get(), fork_.get(), 0));
        communicator_.sum(values, stream_.get());
        started_ = true;
    }

    cudaStream_t device_stream_;
    UniqueStream stream_;
    UniqueEvent fork_;
    UniqueEvent join_;
    NcclCommunicator communicator_;
    bool started_ = false;  ///< there are sums that wait() has not yet ordered before the device's work
};

}  // namespace

bool has_nccl() noexcept {
    return true;
}

std::unique_ptr<AllReduce> make_nccl_all_reduce(const Group& group, backend::Device& device, double timeout_seconds) {
    return std::make_unique<NcclAllReduce>(group, device, timeout_seconds);
}

NcclVersion nccl_version() {
    NcclVersion version{.built = NCCL_VERSION_CODE};
    static_cast<void>(ncclGetVersion(&version.loaded));
    return version;
}

}  // namespace finch::comm
