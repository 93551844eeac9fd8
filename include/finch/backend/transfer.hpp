#pragma once

#include <cstddef>
#include <span>

namespace finch::backend {

/// Copies floats from a device to the host and back, for sums that the host computes. The device executes the copies
/// and its other work in the order in which they were enqueued. The host buffer is pinned memory. A Device makes the
/// transfer and must outlive it.
class Transfer {
public:
    virtual ~Transfer() = default;

    /// Copies `from` to the host after all previously enqueued work. `from` is device memory and has at most as many
    /// floats as the transfer was made for. Does not block.
    virtual void fetch(std::span<const float> from) = 0;
    /// True if the last fetch() has completed.
    [[nodiscard]] virtual bool has_arrived() = 0;
    /// Returns the data of the last fetch(). The data are valid after has_arrived() has returned true and until the
    /// next call of fetch().
    [[nodiscard]] virtual std::span<float> host() = 0;
    /// Copies the data of host() to the device memory `to` before all work that is enqueued later. Does not block.
    virtual void put_back(std::span<float> to) = 0;
};

}  // namespace finch::backend
