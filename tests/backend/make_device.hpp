#pragma once

#include "finch/backend/device.hpp"

#include <memory>
#include <span>
#include <vector>

namespace finch::test {

/// The device that a test program is about: defined beside it, once for each backend.
[[nodiscard]] std::unique_ptr<backend::Device> make_device();

/// A buffer with `values` on the device; and back.
template <class Values>
backend::Buffer on_device(backend::Device& device, const Values& values) {
    backend::Buffer buffer = device.allocate(values.size());
    device.upload(std::vector<float>(values.begin(), values.end()), buffer.data());
    return buffer;
}
inline std::vector<float> from_device(backend::Device& device, const backend::Buffer& buffer) {
    std::vector<float> values(buffer.size());
    device.synchronize();
    device.download(buffer.data(), values);
    return values;
}

}  // namespace finch::test
