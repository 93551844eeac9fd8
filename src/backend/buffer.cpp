#include "finch/backend/device.hpp"

#include <utility>

namespace finch::backend {

Buffer::Buffer(float* data, std::size_t size, std::function<void(float*)> free)
    : data_(data, std::move(free)), size_(size) {}

}  // namespace finch::backend
