// Replaces the CUDA runtime in tests: the machine, its devices, its errors, and the settings of a test.
#include "support/rehearsal/kernel_entry.hpp"
#include "support/rehearsal/machine.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace {

constexpr int most_shared_bytes = 227 * 1024;  ///< maximum shared memory of a block on an H200

}  // namespace

namespace finch::rehearsal {

Machine::Machine() {
    read_environment();
}
void Machine::read_environment() {
    const char* count = std::getenv("FINCH_REHEARSAL_DEVICES");
    const char* bytes = std::getenv("FINCH_REHEARSAL_MEMORY");
    devices = count != nullptr ? std::atoi(count) : 1;
    memory = bytes != nullptr ? std::strtoull(bytes, nullptr, 10) : std::size_t{1} << 30;
}

Machine& machine() {
    static auto* const one = new Machine;
    return *one;
}

cudaError_t remember(cudaError_t code) {
    if (code != cudaSuccess) {
        machine().last_error = code;
    }
    return code;
}

void fault(const char* what) {
    std::fprintf(stderr, "rehearsal: %s\n", what);
    std::abort();
}

void reset() {
    drain_all();
    machine().counts.clear();
    machine().failures.clear();
    machine().execution = Execution::at_once;
    machine().last_error = cudaSuccess;
    machine().forgives = false;
    machine().has_pools = true;
    machine().device_name = "stand-in of a GPU";
    machine().multiprocessors = 132;
    machine().was_called = false;
    machine().clock = nullptr;
    for (const auto& line : machine().lines) {
        line->blocked = false;
    }
    machine().read_environment();
}
void set_devices(int count) {
    machine().devices = count;
}
void set_memory(std::size_t bytes) {
    machine().memory = bytes;
}
void set_device_name(const std::string& name) {
    machine().device_name = name;
}
void set_multiprocessors(int count) {
    machine().multiprocessors = count;
}
int multiprocessors() {
    return machine().multiprocessors;
}
void set_execution(Execution execution) {
    drain_all();
    machine().execution = execution;
}
void fail(const std::string& function, int nth, cudaError_t code) {
    machine().failures[function] = {nth, code};
}
void set_clock(std::function<std::uint64_t()> nanoseconds) {
    machine().clock = std::move(nanoseconds);
}
std::uint64_t device_nanoseconds() {
    return machine().clock ? machine().clock()
                           : static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
void forgive_waiting() {
    machine().forgives = true;
}
int calls(const std::string& function) {
    return machine().counts[function];
}
std::string queues_asked_for() {
    return machine().queues;
}
void take_pools_away() {
    machine().has_pools = false;
}
std::size_t nodes_of_last_graph() {
    return machine().last_graph;
}

std::size_t shared_limit(const void* function) {
    const auto asked = machine().shared_limits.find(function);
    return asked == machine().shared_limits.end() ? 48 * 1024 : asked->second;
}

cudaError_t called(const std::string& function) {
    if (!std::exchange(machine().was_called, true)) {
        const char* queues = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
        machine().queues = queues != nullptr ? queues : "";
    }
    ++machine().counts[function];
    const auto failure = machine().failures.find(function);
    if (failure != machine().failures.end() && --failure->second.first == 0) {
        const cudaError_t code = failure->second.second;
        machine().failures.erase(failure);
        return remember(code);
    }
    return cudaSuccess;
}

}  // namespace finch::rehearsal

using namespace finch::rehearsal;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
    REHEARSE(cudaGetDeviceCount);
    *count = machine().devices;
    return machine().devices > 0 ? cudaSuccess : remember(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int index) {
    REHEARSE(cudaSetDevice);
    if (index < 0 || index >= machine().devices) {
        return remember(cudaErrorInvalidDevice);
    }
    machine().current = index;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* index) {
    *index = machine().current;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
    REHEARSE(cudaGetDeviceProperties);
    if (index < 0 || index >= machine().devices) {
        return remember(cudaErrorInvalidDevice);
    }
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "%s", machine().device_name.c_str());
    properties->major = 9;
    properties->minor = 0;
    properties->multiProcessorCount = machine().multiprocessors;
    properties->totalGlobalMem = machine().memory;
    properties->sharedMemPerBlockOptin = most_shared_bytes;
    properties->cooperativeLaunch = 1;
    properties->uuid.bytes[15] = static_cast<char>(index + 1);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int index) {
    REHEARSE(cudaDeviceGetPCIBusId);
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", index + 1);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
    REHEARSE(cudaDeviceGetAttribute);
    *value = attribute == cudaDevAttrComputeCapabilityMajor                        ? 9
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin                ? most_shared_bytes
             : attribute == cudaDevAttrMemoryPoolsSupported && machine().has_pools ? 1
                                                                                   : 0;
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
    REHEARSE(cudaFuncSetAttribute);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > most_shared_bytes) {
        return remember(cudaErrorInvalidValue);
    }
    machine().shared_limits[function] = static_cast<std::size_t>(value);
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
    REHEARSE(cudaDeviceCanAccessPeer);
    *can = 1;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
    REHEARSE(cudaDriverGetVersion);
    *version = 13000;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaGetLastError() {
    return std::exchange(machine().last_error, cudaSuccess);
}
const char* cudaGetErrorString(cudaError_t code) {
    return code == cudaSuccess                 ? "no error"
           : code == cudaErrorMemoryAllocation ? "out of memory"
           : code == cudaErrorNoDevice         ? "no CUDA-capable device is detected"
                                               : "an error of the stand-in";
}
const char* cudaGetErrorName(cudaError_t code) {
    return code == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}

}  // extern "C"
