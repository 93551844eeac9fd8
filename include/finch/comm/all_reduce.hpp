#pragma once

#include "finch/comm/group.hpp"

#include <memory>
#include <span>

namespace finch::comm {

/// Sums gradients over a worker's ranks beside the computation. Every rank starts the same buckets in the same order.
class AllReduce {
public:
    virtual ~AllReduce() = default;

    /// Collective over the worker; does not block. Begins to sum `bucket` in place; it must stay untouched until
    /// wait().
    virtual void start(std::span<float> bucket) = 0;
    /// Lets the transfers move on; called between layers. Does not block.
    virtual void progress() = 0;
    /// Waits for every bucket started since the last wait(). Throws Error that names the bucket and the timeout where a
    /// peer does not come; the buckets then still belong to MPI, and wait() may be called again.
    virtual void wait() = 0;
};

/// MPI_Iallreduce over `group`, which must outlive it. All ranks get the same bits. One rank: nothing to do.
/// `timeout_seconds` counts from the beginning of wait().
[[nodiscard]] std::unique_ptr<AllReduce> make_mpi_all_reduce(const Group& group, double timeout_seconds);

}  // namespace finch::comm
