#pragma once

#include "finch/backend/device.hpp"

#include "stream.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <tuple>

namespace finch::backend::cuda {

/// A data set in device memory.
struct ResidentImages {
    DeviceMemory pixels;   ///< (samples, H, W, C), as bytes
    DeviceMemory answers;  ///< labels or targets
};

/// The data sets in a device's memory. Each data set is stored once for all its users and freed with the last user.
class ResidentSets {
public:
    /// Returns the data set. Copies the data set to the device if it is not there yet. Returns null if the data set
    /// would take more than a third of the free memory, or does not fit. The caller must then stream the images.
    [[nodiscard]] std::shared_ptr<const ResidentImages> get(Stream& stream, const Images& images);

private:
    using Key = std::tuple<const void*, const void*, std::size_t>;  ///< host addresses of pixels and answers; size
    std::map<Key, std::weak_ptr<const ResidentImages>> sets_;
};

}  // namespace finch::backend::cuda
