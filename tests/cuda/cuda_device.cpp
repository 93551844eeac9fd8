#include "finch/backend/cuda.hpp"

#include "backend/make_device.hpp"

#include <cstdlib>
#include <string_view>

namespace finch::test {

/// Creates the first GPU or its stand-in. FINCH_TEST_PATH selects the kernels. With `library` all operations use cuDNN
/// and cuBLASLt. With `direct` operations use Finch's own kernels if these support the shape.
std::unique_ptr<backend::Device> make_device() {
    const char* text = std::getenv("FINCH_TEST_PATH");
    const std::string_view path = text != nullptr ? text : "";
    return backend::make_cuda_device(0, path == "library"  ? backend::CudaPath::library
                                        : path == "direct" ? backend::CudaPath::direct
                                                           : backend::CudaPath::automatic);
}

}  // namespace finch::test
