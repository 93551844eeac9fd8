#pragma once

#include "finch/backend/device.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace finch::test {

/// Creates the device that a test program tests. Each backend defines this function in a file of its own.
[[nodiscard]] std::unique_ptr<backend::Device> make_device();

/// on_device() returns a new buffer of the device with `values`. from_device() returns the values of a buffer.
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

/// Begins the next step of `context`. `pixels`: H·W·C of all images of a batch.
inline void begin_step(backend::Device& device, backend::StepContext& context, std::size_t pixels) {
    const backend::Buffer images = device.allocate(pixels);
    device.next_step(context);
    device.load_batch(context, images.data());
}

}  // namespace finch::test
