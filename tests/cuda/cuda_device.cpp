#include "finch/backend/cuda.hpp"

#include "backend/make_device.hpp"

#include <cstdlib>
#include <string_view>

namespace finch::test {

/// The first GPU, or its stand-in. FINCH_TEST_PATH=library leaves everything to cuDNN and cuBLASLt, direct nothing that
/// Finch's own kernels can do.
std::unique_ptr<backend::Device> make_device() {
    const char* text = std::getenv("FINCH_TEST_PATH");
    const std::string_view path = text != nullptr ? text : "";
    return backend::make_cuda_device(0, path == "library"  ? backend::CudaPath::library
                                        : path == "direct" ? backend::CudaPath::direct
                                                           : backend::CudaPath::automatic);
}

}  // namespace finch::test
