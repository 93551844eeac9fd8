#include "shared_memory.hpp"

namespace finch::backend::cuda {

cudaError_t allow_shared_memory(const void* kernel, std::size_t bytes) {
    constexpr std::size_t without_asking = 48 * 1024;
    if (bytes <= without_asking) {
        return cudaSuccess;
    }
    int device = 0;
    int most = 0;
    if (const cudaError_t code = cudaGetDevice(&device); code != cudaSuccess) {
        return code;
    }
    if (const cudaError_t code = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        code != cudaSuccess) {
        return code;
    }
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
}

}  // namespace finch::backend::cuda
