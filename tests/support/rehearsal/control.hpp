#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <functional>
#include <string>

/// Settings and queries for the stand-ins of CUDA's libraries. A process has one machine with FINCH_REHEARSAL_DEVICES
/// devices (default 1), each with FINCH_REHEARSAL_MEMORY bytes (default 1 GiB).
namespace finch::rehearsal {

/// Resets all settings and counts. Allocated memory stays valid.
void reset();

void set_devices(int count);
void set_memory(std::size_t bytes);             ///< of each device
void set_device_name(const std::string& name);  ///< of each device
void set_multiprocessors(int count);            ///< of each device
/// The time at which streams run their work. `at_once`: immediately. `late`: only if the program waits for the work, so
/// a missing synchronisation reads old values. `others_first`: late, but all other streams run before the stream for
/// which the program waits, as far as their dependencies allow.
enum class Execution { at_once, late, others_first };
void set_execution(Execution execution);
/// Lets the `nth` next call of `function` (1: the next) return `code` without an effect.
void fail(const std::string& function, int nth, cudaError_t code);
/// Lets cudaStreamQuery() return cudaErrorNotReady for the stream forever, as if a peer rank never arrived.
void block(cudaStream_t stream);
/// Sets the device clock, for kernels and events. Empty: the host's clock.
void set_clock(std::function<std::uint64_t()> nanoseconds);
/// Allows the program to wait for a blocked stream, at the end of a test. Otherwise this wait aborts the program.
void forgive_waiting();

/// Returns the number of calls of `function` since reset().
[[nodiscard]] int calls(const std::string& function);
/// Returns the value of CUDA_DEVICE_MAX_CONNECTIONS at the first call since reset(). CUDA reads it only once.
[[nodiscard]] std::string queues_asked_for();
/// Removes support for memory pools from the devices: the creation of a pool fails.
void take_pools_away();
/// device_bytes_in_use() returns the bytes of allocated device memory, pinned_bytes_in_use() of pinned host memory.
[[nodiscard]] std::size_t device_bytes_in_use();
[[nodiscard]] std::size_t pinned_bytes_in_use();
/// Returns the number of kernels, copies and library calls in the graph that was instantiated last.
[[nodiscard]] std::size_t nodes_of_last_graph();

/// For the other stand-ins. Returns whether [memory, memory + bytes) is within one allocation of device memory.
[[nodiscard]] bool is_device_memory(const void* memory, std::size_t bytes);
/// For the other stand-ins. Counts a call of `function` and returns the error code that this call must return.
[[nodiscard]] cudaError_t called(const std::string& function);

}  // namespace finch::rehearsal
