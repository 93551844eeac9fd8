#include "finch/backend/cuda.hpp"

#include "backend/make_device.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace finch::test {

/// The first GPU; FINCH_TEST_PATH=library leaves everything to cuDNN and cuBLASLt. Without a GPU the test is skipped.
std::unique_ptr<backend::Device> make_device() {
    if (backend::cuda_device_count() == 0) {
        std::puts("skipped: no CUDA device");
        std::exit(77);
    }
    const char* path = std::getenv("FINCH_TEST_PATH");
    const bool library = path != nullptr && std::strcmp(path, "library") == 0;
    return backend::make_cuda_device(0, library ? backend::CudaPath::library : backend::CudaPath::automatic);
}

}  // namespace finch::test
