#include "finch/backend/device.hpp"

#include "finch/base/error.hpp"

#include <utility>

namespace finch::backend {

Buffer::Buffer(float* data, std::size_t size, std::function<void(float*)> free)
    : data_(data, std::move(free)), size_(size) {}

std::unique_ptr<Transfer> Device::make_transfer(std::size_t /*floats*/) {
    throw Error("workers.communicator: staged: " + name() + " has no transfers to the host");
}

}  // namespace finch::backend
