#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <functional>
#include <string>

/// What a test can make the stand-ins of CUDA's libraries do, and what it can ask them. One process has one machine
/// with as many devices as FINCH_REHEARSAL_DEVICES says (1), of FINCH_REHEARSAL_MEMORY bytes each (1 GiB).
namespace finch::rehearsal {

/// Forgets all settings and counts. Memory that somebody still has stays his.
void reset();

void set_devices(int count);
void set_memory(std::size_t bytes);  ///< of each device
/// When streams do their work. At once: asked for is done. Late: only what somebody waits for, so that who does not
/// wait, or does not let one stream wait for the other, reads old values. Others first: late too, but all other streams
/// go ahead of the one that is waited for, as far as they have been told to wait for nothing.
enum class Execution { at_once, late, others_first };
void set_execution(Execution execution);
/// The `nth` call of `function` from now on (1 is the next) returns `code` and does nothing.
void fail(const std::string& function, int nth, cudaError_t code);
/// The stream never gets done: cudaStreamQuery says that it is not ready. As if a peer never came.
void block(cudaStream_t stream);
/// What kernels read from the device's clock, in place of the host's; empty: that again.
void set_clock(std::function<std::uint64_t()> nanoseconds);
/// Lets somebody wait for a blocked stream, which is an error of the program otherwise: for the end of a test.
void forgive_waiting();

/// How often `function` was called since reset().
[[nodiscard]] int calls(const std::string& function);
/// CUDA_DEVICE_MAX_CONNECTIONS as it was at the first call since reset(); CUDA reads it once.
[[nodiscard]] std::string queues_asked_for();
/// Devices have no memory pools: cudaMallocFromPoolAsync and its like are refused.
void take_pools_away();
/// Bytes of device memory, and of pinned host memory, that somebody has.
[[nodiscard]] std::size_t device_bytes_in_use();
[[nodiscard]] std::size_t pinned_bytes_in_use();
/// Kernels, copies and library calls that a graph holds that was instantiated last.
[[nodiscard]] std::size_t nodes_of_last_graph();

/// For the other stand-ins: whether [memory, memory + bytes) lies in one piece of device memory.
[[nodiscard]] bool is_device_memory(const void* memory, std::size_t bytes);
/// For the other stand-ins: counts a call; what it is to return.
[[nodiscard]] cudaError_t called(const std::string& function);

}  // namespace finch::rehearsal
