// Stands in for the CUDA backend where it is not built.
#include "finch/backend/cuda.hpp"
#include "finch/base/error.hpp"

namespace finch::backend {

std::unique_ptr<Device> make_cuda_device(int) {
    throw ConfigError("workers.device: cuda: this program was built without CUDA; auto and cpu serve");
}
std::unique_ptr<Device> make_cuda_device(int index, CudaPath) {
    return make_cuda_device(index);
}
int cuda_device_count() {
    return 0;
}
std::vector<DeviceDescription> cuda_devices() {
    return {};
}
CudaVersions cuda_versions() {
    return {.problem = "this program was built without CUDA"};
}

}  // namespace finch::backend
