#include "finch/backend/cuda.hpp"

#include "backend/make_device.hpp"

namespace finch::test {

/// The device that leaves everything to the libraries, so to their stand-ins.
std::unique_ptr<backend::Device> make_device() {
    return backend::make_cuda_device(0, backend::CudaPath::library);
}

}  // namespace finch::test
