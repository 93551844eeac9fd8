// Stands in for the CUDA runtime in tests: memory is the host's, streams do their work at once or late, graphs are
// lists of functions. It refuses what CUDA refuses: memory that is not the device's, waiting within a capture, a
// capture whose second stream does not come back.
#include "support/rehearsal/control.hpp"
#include "support/rehearsal/kernel_launch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

struct CUgraph_st {
    std::vector<std::function<void()>> work;
};
struct CUgraphExec_st {
    std::vector<std::function<void()>> work;
};

/// What is captured now: by the stream that began it and those that joined.
struct Capture {
    cudaStream_t origin = nullptr;
    std::set<cudaStream_t> joined;
    std::set<cudaStream_t> away;  ///< joined, and not waited for since their last work
    bool invalid = false;
    CUgraph_st graph;
};

struct CUstream_st {
    std::shared_ptr<Capture> capture;
    bool blocked = false;
};

struct CUevent_st {
    double seconds = 0;
    std::shared_ptr<Capture> capture;  ///< in which it was recorded last
    cudaStream_t stream = nullptr;     ///< on which, within a capture
};

namespace finch::rehearsal {
namespace {

constexpr std::size_t zone = 64;  ///< bytes of a red zone on both sides
constexpr unsigned char zone_byte = 0xA5;

struct Machine {
    int devices = 1;
    std::size_t memory = std::size_t{1} << 30;
    Execution execution = Execution::at_once;
    std::map<std::string, int> counts;
    std::map<std::string, std::pair<int, cudaError_t>> failures;  ///< calls until it fails
    std::map<const unsigned char*, std::size_t> device_memory;
    std::map<const unsigned char*, std::size_t> pinned_memory;
    std::deque<std::function<void()>> late;
    cudaError_t last_error = cudaSuccess;
    int current = 0;
    std::size_t last_graph = 0;
    bool forgives = false;
    CUstream_st default_stream;

    Machine() { read_environment(); }
    void read_environment() {
        const char* count = std::getenv("FINCH_REHEARSAL_DEVICES");
        const char* bytes = std::getenv("FINCH_REHEARSAL_MEMORY");
        devices = count != nullptr ? std::atoi(count) : 1;
        memory = bytes != nullptr ? std::strtoull(bytes, nullptr, 10) : std::size_t{1} << 30;
    }
};

/// Lives as long as the process: handles may be destroyed by static destructors.
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

[[noreturn]] void fault(const char* what) {
    std::fprintf(stderr, "rehearsal: %s\n", what);
    std::abort();
}

CUstream_st& of(cudaStream_t stream) {
    return stream == nullptr ? machine().default_stream : *stream;
}

void drain() {
    auto& late = machine().late;
    while (!late.empty()) {
        const auto work = std::move(late.front());
        late.pop_front();
        work();
    }
}

std::size_t total(const std::map<const unsigned char*, std::size_t>& memory) {
    std::size_t sum = 0;
    for (const auto& [address, bytes] : memory) {
        sum += bytes;
    }
    return sum;
}

bool holds(const std::map<const unsigned char*, std::size_t>& memory, const void* address, std::size_t bytes) {
    const auto* first = static_cast<const unsigned char*>(address);
    auto after = memory.upper_bound(first);
    if (after == memory.begin()) {
        return false;
    }
    --after;
    return first + bytes <= after->first + after->second;
}

/// Memory between red zones, full of NaN.
void* take(std::map<const unsigned char*, std::size_t>& memory, std::size_t bytes) {
    auto* whole = static_cast<unsigned char*>(std::aligned_alloc(256, (bytes + 2 * 256 + 255) / 256 * 256));
    std::memset(whole, zone_byte, 256);
    std::memset(whole + 256, 0xff, bytes);
    std::memset(whole + 256 + bytes, zone_byte, zone);
    memory[whole + 256] = bytes;
    return whole + 256;
}

bool give_back(std::map<const unsigned char*, std::size_t>& memory, void* address) {
    const auto found = memory.find(static_cast<const unsigned char*>(address));
    if (found == memory.end()) {
        return false;
    }
    auto* first = static_cast<unsigned char*>(address);
    const auto intact = [](unsigned char byte) { return byte == zone_byte; };
    if (!std::all_of(first - zone, first, intact) ||
        !std::all_of(first + found->second, first + found->second + zone, intact)) {
        fault("something was written outside of its memory");
    }
    memory.erase(found);
    std::free(first - 256);
    return true;
}

bool somebody_captures = false;

cudaError_t invalidate(cudaStream_t stream) {
    of(stream).capture->invalid = true;
    return remember(cudaErrorStreamCaptureUnsupported);
}

}  // namespace

void reset() {
    drain();
    machine().counts.clear();
    machine().failures.clear();
    machine().execution = Execution::at_once;
    machine().last_error = cudaSuccess;
    machine().read_environment();
}
void set_devices(int count) {
    machine().devices = count;
}
void set_memory(std::size_t bytes) {
    machine().memory = bytes;
}
void set_execution(Execution execution) {
    drain();
    machine().execution = execution;
}
void fail(const std::string& function, int nth, cudaError_t code) {
    machine().failures[function] = {nth, code};
}
void block(cudaStream_t stream) {
    of(stream).blocked = true;
}
void forgive_waiting() {
    machine().forgives = true;
}
int calls(const std::string& function) {
    return machine().counts[function];
}
std::size_t device_bytes_in_use() {
    return total(machine().device_memory);
}
std::size_t pinned_bytes_in_use() {
    return total(machine().pinned_memory);
}
std::size_t nodes_of_last_graph() {
    return machine().last_graph;
}
bool is_device_memory(const void* memory, std::size_t bytes) {
    return holds(machine().device_memory, memory, bytes);
}

cudaError_t called(const std::string& function) {
    ++machine().counts[function];
    const auto failure = machine().failures.find(function);
    if (failure != machine().failures.end() && --failure->second.first == 0) {
        const cudaError_t code = failure->second.second;
        machine().failures.erase(failure);
        return remember(code);
    }
    return cudaSuccess;
}

void submit(cudaStream_t stream, std::function<void()> work) {
    CUstream_st& on = of(stream);
    if (on.capture) {
        if (stream != on.capture->origin) {
            on.capture->away.insert(stream);
        }
        on.capture->graph.work.push_back(std::move(work));
    } else if (machine().execution == Execution::late) {
        machine().late.push_back(std::move(work));
    } else {
        work();
    }
}

}  // namespace finch::rehearsal

using namespace finch::rehearsal;

#define REHEARSE(function)                                               \
    if (const cudaError_t code = called(#function); code != cudaSuccess) \
    return code

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
    REHEARSE(cudaMalloc);
    if (somebody_captures) {
        return remember(cudaErrorStreamCaptureUnsupported);
    }
    if (bytes > machine().memory || device_bytes_in_use() > machine().memory - bytes) {
        return remember(cudaErrorMemoryAllocation);
    }
    *memory = take(machine().device_memory, bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
    REHEARSE(cudaFree);
    drain();
    return memory == nullptr || give_back(machine().device_memory, memory) ? cudaSuccess
                                                                           : remember(cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
    REHEARSE(cudaHostAlloc);
    *memory = take(machine().pinned_memory, bytes);
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
    REHEARSE(cudaFreeHost);
    drain();
    return memory == nullptr || give_back(machine().pinned_memory, memory) ? cudaSuccess
                                                                           : remember(cudaErrorInvalidValue);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total_bytes) {
    REHEARSE(cudaMemGetInfo);
    *total_bytes = machine().memory;
    *free = machine().memory - std::min(machine().memory, device_bytes_in_use());
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    REHEARSE(cudaMemcpyAsync);
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (bytes > 0 && (to_device != is_device_memory(to, bytes) || from_device != is_device_memory(from, bytes))) {
        return remember(cudaErrorInvalidValue);
    }
    const void* host = to_device && from_device ? nullptr : to_device ? from : to;
    if (host != nullptr && !holds(machine().pinned_memory, host, bytes)) {
        if (of(stream).capture) {
            return invalidate(stream);
        }
        drain();  // a copy of pageable memory is staged, or waited for
        std::memcpy(to, from, bytes);
        return cudaSuccess;
    }
    submit(stream, [=] { std::memcpy(to, from, bytes); });
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
    REHEARSE(cudaMemsetAsync);
    if (bytes > 0 && !is_device_memory(to, bytes)) {
        return remember(cudaErrorInvalidValue);
    }
    submit(stream, [=] { std::memset(to, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    REHEARSE(cudaStreamCreateWithFlags);
    *stream = new CUstream_st;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    REHEARSE(cudaStreamDestroy);
    drain();
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    REHEARSE(cudaStreamSynchronize);
    if (of(stream).capture) {
        return invalidate(stream);
    }
    if (of(stream).blocked && !machine().forgives) {
        fault("somebody waits without a deadline for a stream that never gets done");
    }
    drain();
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    REHEARSE(cudaStreamQuery);
    if (of(stream).capture) {
        return invalidate(stream);
    }
    if (of(stream).blocked) {
        return cudaErrorNotReady;
    }
    drain();
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    REHEARSE(cudaStreamWaitEvent);
    CUstream_st& on = of(stream);
    if (event->capture && !on.capture) {
        on.capture = event->capture;
        on.capture->joined.insert(stream);
        on.capture->away.insert(stream);
    } else if (event->capture && stream == on.capture->origin) {
        on.capture->away.erase(event->stream);
    } else if (event->stream != nullptr && of(event->stream).blocked) {
        on.blocked = true;
    }
    return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    REHEARSE(cudaStreamBeginCapture);
    if (of(stream).capture) {
        return remember(cudaErrorIllegalState);
    }
    of(stream).capture = std::make_shared<Capture>();
    of(stream).capture->origin = stream;
    somebody_captures = true;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    const cudaError_t failure = called("cudaStreamEndCapture");
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = of(stream).capture;
    if (!capture || capture->origin != stream) {
        return remember(cudaErrorIllegalState);
    }
    somebody_captures = false;
    const bool unjoined = !capture->away.empty();
    for (const cudaStream_t joined : capture->joined) {
        of(joined).capture = nullptr;
    }
    of(stream).capture = nullptr;
    if (failure != cudaSuccess) {
        return failure;  // it ends all the same
    }
    if (capture->invalid || unjoined) {
        return remember(unjoined ? cudaErrorStreamCaptureUnjoined : cudaErrorStreamCaptureInvalidated);
    }
    *graph = new CUgraph_st(std::move(capture->graph));
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    REHEARSE(cudaStreamIsCapturing);
    *status = of(stream).capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    REHEARSE(cudaEventCreateWithFlags);
    *event = new CUevent_st;
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    REHEARSE(cudaEventDestroy);
    drain();
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    REHEARSE(cudaEventRecord);
    event->capture = of(stream).capture;
    event->stream = stream;
    if (!event->capture) {
        submit(stream, [event] {
            event->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        });
    }
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    REHEARSE(cudaEventQuery);
    if (event->stream != nullptr && of(event->stream).blocked) {
        return cudaErrorNotReady;
    }
    drain();
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
    REHEARSE(cudaEventSynchronize);
    drain();
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    REHEARSE(cudaEventElapsedTime);
    drain();
    *milliseconds = static_cast<float>(1000 * (end->seconds - begin->seconds));
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
    REHEARSE(cudaGraphInstantiate);
    machine().last_graph = graph->work.size();
    *exec = new CUgraphExec_st{graph->work};
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    REHEARSE(cudaGraphLaunch);
    for (const auto& work : exec->work) {
        submit(stream, work);
    }
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    REHEARSE(cudaGraphDestroy);
    delete graph;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    REHEARSE(cudaGraphExecDestroy);
    drain();
    delete exec;
    return cudaSuccess;
}

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
    std::snprintf(properties->name, sizeof properties->name, "stand-in of a GPU");
    properties->major = 9;
    properties->minor = 0;
    properties->multiProcessorCount = 132;
    properties->totalGlobalMem = machine().memory;
    properties->sharedMemPerBlockOptin = 227 * 1024;
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
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
    REHEARSE(cudaDeviceCanAccessPeer);
    *can = 1;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
    REHEARSE(cudaDeviceSynchronize);
    drain();
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
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
cudaError_t cudaPeekAtLastError() {
    return machine().last_error;
}
const char* cudaGetErrorString(cudaError_t code) {
    switch (code) {
        case cudaSuccess:
            return "no error";
        case cudaErrorMemoryAllocation:
            return "out of memory";
        case cudaErrorNoDevice:
            return "no CUDA-capable device is detected";
        default:
            return "an error of the stand-in";
    }
}
const char* cudaGetErrorName(cudaError_t code) {
    return code == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}

}  // extern "C"
