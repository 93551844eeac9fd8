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

// What the parts of the stand-in of the CUDA runtime share.
struct CUmemPoolHandle_st {
    std::size_t reserved = 0;
    std::size_t used = 0;
    std::uint64_t threshold = 0;
};

namespace finch::rehearsal {

struct Line;

/// The first `count` items of a line, since its beginning.
struct Place {
    std::shared_ptr<Line> line;  ///< null: nowhere
    std::size_t count = 0;
};

/// A kernel: which one, and the shared memory that it is started with.
struct Kernel {
    const void* function = nullptr;
    std::size_t shared_bytes = 0;
};

/// Work, or another line's place that must be reached first.
struct Item {
    std::function<void()> work;
    Place awaited;
    Kernel kernel = {};  ///< of work that is one
};

/// Items to be done one after another: a stream's, or what was captured on a stream.
struct Line {
    std::deque<Item> items;
    std::size_t done = 0;  ///< items that were there and are done
    bool blocked = false;  ///< never gets done, as far as its stream tells

    [[nodiscard]] std::size_t end() const { return done + items.size(); }
};

/// A capture under way or ended: what each stream has been asked for in it.
struct Capture {
    cudaStream_t origin = nullptr;
    std::map<cudaStream_t, std::shared_ptr<Line>> lines;
    bool invalid = false;
    bool ended = false;
};

using Pieces = std::map<const unsigned char*, std::size_t>;  ///< of memory: bytes by address

struct Machine {
    int devices = 1;
    std::size_t memory = std::size_t{1} << 30;
    Execution execution = Execution::at_once;
    std::map<std::string, int> counts;
    std::map<std::string, std::pair<int, cudaError_t>> failures;  ///< calls until it fails
    Pieces device_memory;
    Pieces pinned_memory;
    std::vector<std::shared_ptr<Line>> lines;  ///< of all streams; the first is the default stream's
    std::shared_ptr<Capture> capture;          ///< the one under way
    cudaError_t last_error = cudaSuccess;
    int current = 0;
    std::size_t last_graph = 0;
    bool forgives = false;
    bool has_pools = true;
    std::map<const unsigned char*, cudaMemPool_t> pooled;  ///< of the device memory: what came from a pool
    std::set<cudaMemPool_t> pools;
    std::map<const void*, std::size_t> shared_limits;  ///< of kernels that asked for more shared memory
    std::string queues;
    bool was_called = false;
    std::function<std::uint64_t()> clock;  ///< ns; empty: the host's

    Machine();
    void read_environment();
};

/// Lives as long as the process: handles may be destroyed by static destructors.
[[nodiscard]] Machine& machine();
/// Keeps `code` for cudaGetLastError, and returns it.
cudaError_t remember(cudaError_t code);
/// A fault of the program that CUDA would not tell: ends it.
[[noreturn]] void fault(const char* what);

[[nodiscard]] bool holds(const Pieces& pieces, const void* address, std::size_t bytes);
[[nodiscard]] bool is_capturing(cudaStream_t stream);
/// What a call returns that must not come while a stream captures; the capture is lost.
cudaError_t refuse_in_capture();
/// The shared memory that a kernel may be started with.
[[nodiscard]] std::size_t shared_limit(const void* function);
/// What pools keep though nobody has it.
[[nodiscard]] std::size_t idle_pool_bytes();
/// What a pool holds above its threshold goes when somebody waits.
void release_pools();
/// Does all that a stream was asked for, or that all were.
void drain(cudaStream_t stream);
void drain_all();

}  // namespace finch::rehearsal

/// Counts the call, and returns where the test wants it to fail.
#define REHEARSE(function)                                                                 \
    if (const cudaError_t code = finch::rehearsal::called(#function); code != cudaSuccess) \
    return code
