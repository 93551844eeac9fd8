// Properties of CUDA and its devices. The queries do not make a device current.
#include "finch/backend/cuda.hpp"
#include "finch/backend/cuda_runtime.hpp"
#include "finch/base/format.hpp"

#include "libraries.hpp"

#include <cstddef>
#include <string_view>

namespace finch::backend {
namespace {

/// Returns "GPU-" and 8-4-4-4-12 hexadecimal digits, as nvidia-smi prints a UUID. For a part of a GPU, whose name ends
/// like "MIG 3g.20gb", returns "MIG-" and the digits.
std::string uuid_text(const cudaDeviceProp& properties) {
    const bool is_part = std::string_view(properties.name).find("MIG ") != std::string_view::npos;
    std::string text = is_part ? "MIG" : "GPU";
    const auto& bytes = properties.uuid.bytes;
    for (std::size_t i = 0; i < sizeof bytes; ++i) {
        const bool begins_a_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        text += fmt::format("{}{:02x}", begins_a_group ? "-" : "", static_cast<unsigned char>(bytes[i]));
    }
    return text;
}

DeviceDescription describe(int index, int count) {
    cudaDeviceProp properties;
    FINCH_CUDA(cudaGetDeviceProperties(&properties, index));
    char bus[32] = "";
    FINCH_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, index));
    DeviceDescription description{.index = index,
                                  .uuid = uuid_text(properties),
                                  .name = properties.name,
                                  .pci_bus_id = bus,
                                  .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
                                  .capability = 10 * properties.major + properties.minor};
    for (int other = 0; other < count; ++other) {
        int reaches = 0;
        if (other != index) {
            FINCH_CUDA(cudaDeviceCanAccessPeer(&reaches, index, other));
        }
        description.reaches.push_back(reaches != 0);
    }
    return description;
}

/// Returns the number of devices. If CUDA finds no device, writes CUDA's error message to `problem`.
int count_devices(std::string& problem) {
    cuda::ask_for_queues();
    int count = 0;
    if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        problem = cudaGetErrorString(code);
        return 0;
    }
    return count;
}

}  // namespace

int cuda_device_count() {
    std::string problem;
    return count_devices(problem);
}

std::vector<DeviceDescription> cuda_devices() {
    const int count = cuda_device_count();
    std::vector<DeviceDescription> devices;
    for (int index = 0; index < count; ++index) {
        devices.push_back(describe(index, count));
    }
    return devices;
}

std::string cuda_problem() {
    std::string problem;
    static_cast<void>(count_devices(problem));
    return problem;
}

CudaVersions cuda_versions() {
    cuda::ask_for_queues();
    CudaVersions versions{.built = true};
    static_cast<void>(cudaDriverGetVersion(&versions.driver));
    static_cast<void>(cudaRuntimeGetVersion(&versions.runtime));
    versions.cudnn = cuda::cudnn_version();
    versions.cudnn_built = CUDNN_VERSION;
    versions.cublas = cuda::cublas_version();
    versions.problem = cuda_problem();
    return versions;
}

}  // namespace finch::backend
