#pragma once

#include <cstddef>
#include <span>

namespace finch::backend {

/// A copy of some floats from a device to the host and back, for sums that the host computes. The copies are ordered
/// with the device's other work. The host buffer is pinned memory. A Device makes the transfer and must outlive it.
class Transfer {
public:
    virtual ~Transfer() = default;

    /// Copies `from` (device memory, at most as many floats as the transfer was made for) to the host after all
    /// previously enqueued work. Does not block.
    virtual void fetch(std::span<const float> from) = 0;
    /// True if the last fetch() has completed.
    [[nodiscard]] virtual bool has_arrived() = 0;
    /// Returns the data of the last fetch(). The data are valid from the time when has_arrived() returns true until the
    /// next fetch().
    [[nodiscard]] virtual std::span<float> host() = 0;
    /// Copies host() to `to` (device memory) before all work that is enqueued later. Does not block.
    virtual void put_back(std::span<float> to) = 0;
};

}  // namespace finch::backend
