#include "backend/make_device.hpp"

namespace finch::test {

std::unique_ptr<backend::Device> make_device() {
    return backend::make_cpu_device(1);
}

}  // namespace finch::test
