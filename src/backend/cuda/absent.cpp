// Stubs of the CUDA backend's functions for builds without CUDA.
#include "finch/backend/cuda.hpp"
#include "finch/base/error.hpp"

namespace finch::backend {

std::unique_ptr<Device> make_cuda_device(int, int) {
    throw ConfigError("workers.device: cuda: this program was built without CUDA; auto and cpu serve");
}
std::unique_ptr<Device> make_cuda_device(int index, CudaPath, int ranks) {
    return make_cuda_device(index, ranks);
}
int cuda_device_count() {
    return 0;
}
std::vector<DeviceDescription> cuda_devices() {
    return {};
}
std::string cuda_problem() {
    return "this program was built without CUDA";
}
CudaVersions cuda_versions() {
    return {.problem = cuda_problem()};
}

}  // namespace finch::backend
