#include "finch/backend/cuda.hpp"

#include "backend/make_device.hpp"

#include <cstdlib>
#include <cstring>

namespace finch::test {

/// As on a GPU: FINCH_TEST_PATH=library leaves everything to the libraries, so to their stand-ins.
std::unique_ptr<backend::Device> make_device() {
    const char* path = std::getenv("FINCH_TEST_PATH");
    const bool library = path != nullptr && std::strcmp(path, "library") == 0;
    return backend::make_cuda_device(0, library ? backend::CudaPath::library : backend::CudaPath::automatic);
}

}  // namespace finch::test
