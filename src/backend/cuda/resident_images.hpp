#pragma once

#include "finch/backend/device.hpp"

#include "stream.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <tuple>

namespace finch::backend::cuda {

/// A data set in the device's memory.
struct ResidentImages {
    DeviceMemory pixels;   ///< (samples, H, W, C), as bytes
    DeviceMemory answers;  ///< labels or targets
};

/// The data sets of a device, each once for all that use it and no longer than they do.
class ResidentSets {
public:
    /// The data set, brought now where it is not there yet. Null if it would take more than a third of the free
    /// memory, or there is not enough: it is to be streamed.
    [[nodiscard]] std::shared_ptr<const ResidentImages> get(Stream& stream, const Images& images);

private:
    using Key = std::tuple<const void*, const void*, std::size_t>;  ///< where its pixels and answers lie on the host
    std::map<Key, std::weak_ptr<const ResidentImages>> sets_;
};

}  // namespace finch::backend::cuda
