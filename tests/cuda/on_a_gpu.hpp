#pragma once

#include "finch/backend/cuda.hpp"

namespace finch::test {

/// Returns whether the device is a real GPU. On the stand-in the threads of a kernel run one after another, so tests
/// must use smaller sizes.
[[nodiscard]] inline bool on_a_gpu() {
    const auto devices = backend::cuda_devices();
    return !devices.empty() && devices.front().name != "stand-in of a GPU";
}

}  // namespace finch::test
