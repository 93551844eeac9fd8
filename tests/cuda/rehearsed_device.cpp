#include "backend/make_device.hpp"

namespace finch::test {

std::unique_ptr<backend::Device> make_device() {
    return backend::make_cuda_device(0);
}

}  // namespace finch::test
