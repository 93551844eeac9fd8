#pragma once

#include "support/rehearsal/control.hpp"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

// Shared declarations of the stand-in for the CUDA runtime.
struct CUmemPoolHandle_st {
    std::size_t reserved = 0;
    std::size_t used = 0;
    std::uint64_t threshold = 0;
};

namespace finch::rehearsal {

struct Line;

/// A position in a queue. It is reached when the first `count` items since the start of the queue are complete.
struct Place {
    std::shared_ptr<Line> line;  ///< null: no position
    std::size_t count = 0;
};

/// The address of a kernel, and the shared memory of its launch.
struct Kernel {
    const void* function = nullptr;
    std::size_t shared_bytes = 0;
};

/// An item of a queue: work, or a position in another queue that must be reached first.
struct Item {
    std::function<void()> work;
    Place awaited;
    Kernel kernel = {};  ///< empty if the work is no kernel
};

/// A queue of items that run one after another: a stream, or the captured work of a stream.
struct Line {
    std::deque<Item> items;
    std::size_t done = 0;  ///< number of completed items
    bool blocked = false;  ///< true if stream queries never report completion

    [[nodiscard]] std::size_t end() const { return done + items.size(); }
};

/// An active or ended capture with the recorded work of each stream.
struct Capture {
    cudaStream_t origin = nullptr;
    std::map<cudaStream_t, std::shared_ptr<Line>> lines;
    bool invalid = false;
    bool ended = false;
};

using Pieces = std::map<const unsigned char*, std::size_t>;  ///< memory allocations: address and bytes

struct Machine {
    int devices = 1;
    std::size_t memory = std::size_t{1} << 30;
    std::string device_name = "stand-in of a GPU";
    int multiprocessors = 132;
    Execution execution = Execution::at_once;
    std::map<std::string, int> counts;
    std::map<std::string, std::pair<int, cudaError_t>> failures;  ///< remaining calls, error code
    Pieces device_memory;
    Pieces pinned_memory;
    std::vector<std::shared_ptr<Line>> lines;  ///< queues of all streams; the first is the default stream
    std::shared_ptr<Capture> capture;          ///< the active capture, or null
    cudaError_t last_error = cudaSuccess;
    int current = 0;
    std::size_t last_graph = 0;
    bool forgives = false;
    bool has_pools = true;
    std::map<const unsigned char*, cudaMemPool_t> pooled;  ///< device memory that was allocated from a pool
    std::set<cudaMemPool_t> pools;
    std::map<const void*, std::size_t> shared_limits;  ///< limits of kernels that requested more shared memory
    std::string queues;
    bool was_called = false;
    std::function<std::uint64_t()> clock;  ///< nanoseconds; empty: the host's clock is used

    Machine();
    void read_environment();
};

/// Returns the machine. It is never destroyed, because static destructors may still destroy handles.
[[nodiscard]] Machine& machine();
/// Stores `code` for cudaGetLastError() and returns it.
cudaError_t remember(cudaError_t code);
/// Aborts the program after an error that CUDA would not report.
[[noreturn]] void fault(const char* what);

[[nodiscard]] bool holds(const Pieces& pieces, const void* address, std::size_t bytes);
[[nodiscard]] bool is_capturing(cudaStream_t stream);
/// Invalidates the capture after a call that is not allowed during a capture, and returns the error code of the call.
cudaError_t refuse_in_capture();
/// Returns the maximum shared memory of a kernel launch in bytes.
[[nodiscard]] std::size_t shared_limit(const void* function);
/// Returns the number of unused bytes that the memory pools have reserved.
[[nodiscard]] std::size_t idle_pool_bytes();
/// Releases unused pool memory above the release threshold, as CUDA does at a synchronisation.
void release_pools();
/// drain() runs all work of a stream, and drain_all() of all streams.
void drain(cudaStream_t stream);
void drain_all();

}  // namespace finch::rehearsal

/// Counts the call of `function`. Returns from it with an error code if the test has requested a failure.
#define REHEARSE(function)                                                                 \
    if (const cudaError_t code = finch::rehearsal::called(#function); code != cudaSuccess) \
    return code
