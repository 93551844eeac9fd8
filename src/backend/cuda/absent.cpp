// Stands in for the CUDA backend where it is not built.
#include "finch/backend/device.hpp"
#include "finch/base/error.hpp"

namespace finch::backend {

std::unique_ptr<Device> make_cuda_device(int) {
    throw ConfigError("workers.device: cuda: this program was built without CUDA; auto and cpu serve");
}

int cuda_device_count() {
    return 0;
}

}  // namespace finch::backend
