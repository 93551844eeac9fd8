#pragma once

#include <cstddef>
#include <span>

namespace finch::backend {

/// Made by a Device, which must outlive it. A way of some floats from a device to the host and back, in line with the
/// device's work: for sums that the host makes. The host's copy lies in pinned memory.
class Transfer {
public:
    virtual ~Transfer() = default;

    /// Copies `from` (device memory, at most as many floats as it was made for) to the host, after what the device was
    /// asked for before. Does not wait.
    virtual void fetch(std::span<const float> from) = 0;
    /// Whether what was fetched last is there.
    [[nodiscard]] virtual bool has_arrived() = 0;
    /// The data that were fetched last. Valid after they have arrived, until the next fetch().
    [[nodiscard]] virtual std::span<float> host() = 0;
    /// Copies host() to `to` (device memory), before what the device is asked for from now on. Does not wait.
    virtual void put_back(std::span<float> to) = 0;
};

}  // namespace finch::backend
