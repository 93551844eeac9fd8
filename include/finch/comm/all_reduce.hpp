#pragma once

#include "finch/backend/device.hpp"
#include "finch/cluster/device_map.hpp"
#include "finch/comm/group.hpp"

#include <memory>
#include <span>

namespace finch::comm {

/// Sums over a worker's ranks: gradients beside the computation, statistics within it. Every rank starts the same
/// buckets in the same order.
class AllReduce {
public:
    virtual ~AllReduce() = default;

    /// Whether all of it is enqueued on the device, without a part for the host: a step with it can be captured as a
    /// graph.
    [[nodiscard]] virtual bool is_graph_capturable() const = 0;

    /// Collective over the worker; does not block. Begins to sum `bucket` in place, after what the device was asked for
    /// before; it must stay untouched until wait().
    virtual void start(std::span<float> bucket) = 0;
    /// Lets the transfers move on; called between layers. Does not block.
    virtual void progress() = 0;
    /// Ends the step's sums: what the device is asked for from now on finds every bucket summed. Waits on the host
    /// unless is_graph_capturable(). Throws Error that names the bucket and the timeout where a peer does not come; the
    /// buckets then still belong to the library, and wait() may be called again.
    virtual void wait() = 0;
    /// Collective over the worker, in the same order as the buckets on every rank. Sums `values`, memory of the device,
    /// in place; what the device is asked for from now on finds them summed. Waits on the host unless
    /// is_graph_capturable(). Throws as wait() does.
    virtual void sum(std::span<double> values) = 0;
    /// Waits until the device has done all that it was asked for, sums among it. Throws Error if it does not within
    /// the timeout, or where the library says that a peer has failed. Nothing to do for ranks without a device.
    virtual void synchronize() = 0;
    /// While unwinding, before what the sums use is freed: ends those under way, so that no rank waits for the device
    /// while the device waits for a peer. Every later use throws.
    virtual void give_up() noexcept {}
};

/// MPI_Iallreduce over `group`, which must outlive it. All ranks get the same bits. One rank: nothing to do.
/// `timeout_seconds` counts from the beginning of wait().
[[nodiscard]] std::unique_ptr<AllReduce> make_mpi_all_reduce(const Group& group, double timeout_seconds);

/// Whether this program was built with NCCL.
[[nodiscard]] bool has_nccl() noexcept;
/// Collective over the worker. NCCL on a stream of its own beside that of `device`, ordered by events, so that a step
/// can be captured as a graph with its sums in it. One communicator for the whole run; waits for it with the deadline.
/// `group` and `device` must outlive it. Every CapturedStep must be gone before it. Throws Error (a peer does not
/// come, NCCL's own words), ConfigError "built without NCCL".
[[nodiscard]] std::unique_ptr<AllReduce> make_nccl_all_reduce(const Group& group, backend::Device& device,
                                                              double timeout_seconds);
/// Device → host → MPI_Iallreduce → host → device, for ranks that share a device or have no NCCL. All ranks get the
/// same bits.
[[nodiscard]] std::unique_ptr<AllReduce> make_staged_all_reduce(const Group& group, backend::Device& device,
                                                                double timeout_seconds);

/// Collective over the worker. That of the three that is of `kind`; MPI's where nothing more is asked for.
[[nodiscard]] std::unique_ptr<AllReduce> make_all_reduce(cluster::AllReduceKind kind, const Group& group,
                                                         backend::Device& device, double timeout_seconds);

}  // namespace finch::comm
