#pragma once

#include "finch/backend/cuda.hpp"

namespace finch::test {

/// Whether this is a real device, on which sizes cost nothing, or the stand-in, on which each thread of a kernel does.
[[nodiscard]] inline bool on_a_gpu() {
    const auto devices = backend::cuda_devices();
    return !devices.empty() && devices.front().name != "stand-in of a GPU";
}

}  // namespace finch::test
