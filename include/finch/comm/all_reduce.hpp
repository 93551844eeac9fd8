#pragma once

#include "finch/backend/device.hpp"
#include "finch/cluster/device_map.hpp"
#include "finch/comm/group.hpp"

#include <memory>
#include <span>

namespace finch::comm {

/// Sums over a worker's ranks. Sums of gradients overlap with the computation; sums of statistics are part of the
/// computation. Every rank starts the same buckets in the same order.
class AllReduce {
public:
    virtual ~AllReduce() = default;

    /// Returns how a step is captured together with its sums.
    [[nodiscard]] virtual backend::CaptureAs capture_as() const = 0;
    /// True if the sums run entirely on the device, without host code.
    [[nodiscard]] bool is_graph_capturable() const { return capture_as() != backend::CaptureAs::calls; }

    /// True if the worker has one rank, so that sums change nothing.
    [[nodiscard]] bool is_of_one_rank() const { return capture_as() == backend::CaptureAs::graph; }

    /// Collective over the worker. Does not block. Starts to sum `bucket` in place, after all work that was enqueued on
    /// the device before. The caller must not touch the bucket until wait().
    virtual void start(std::span<float> bucket) = 0;
    /// Does not block. Progresses the transfers. Called between layers.
    virtual void progress() = 0;
    /// Completes the sums of the step: work that is enqueued on the device from now on sees every bucket summed. Blocks
    /// the host unless is_graph_capturable(). If a peer does not arrive, throws an Error that names the bucket and the
    /// timeout. After this error the library still uses the buckets, and wait() may be called again.
    virtual void wait() = 0;
    /// Collective over the worker. All ranks must call sum() and start() in the same order. Sums `values`, which are in
    /// device memory, in place: work that is enqueued on the device from now on sees the sums. Blocks the host unless
    /// is_graph_capturable(). Throws as wait() does.
    virtual void sum(std::span<double> values) = 0;
    /// Waits until the device has completed all enqueued work, including sums. Throws Error after the timeout, or if
    /// the library reports that a peer failed. Does nothing if no sum runs on a device.
    virtual void synchronize() = 0;
    /// Aborts the sums in progress. Called during stack unwinding, before the memory of the sums is freed. Without
    /// give_up(), a rank could wait for a device that waits for a peer. After that NCCL's AllReduce throws when it is
    /// used; those of MPI have nothing to abort.
    virtual void give_up() noexcept {}
};

/// Makes an AllReduce that calls MPI_Iallreduce over `group`. `group` must outlive the AllReduce. All ranks get the
/// same bits. Does nothing for a single rank. `timeout_seconds` counts from the call of wait().
[[nodiscard]] std::unique_ptr<AllReduce> make_mpi_all_reduce(const Group& group, double timeout_seconds);

/// True if this program was built with NCCL.
[[nodiscard]] bool has_nccl() noexcept;
/// Collective over the worker. Makes an AllReduce that calls NCCL on its own CUDA stream. CUDA events synchronize
/// NCCL's stream with the stream of `device`, so a step can be captured as a graph together with its sums. The run uses
/// one communicator, and `timeout_seconds` limits the wait for its creation. `group` and `device` must outlive the
/// AllReduce, and every CapturedStep must be destroyed before the AllReduce. Throws Error if a peer does not arrive or
/// NCCL fails, and ConfigError "built without NCCL".
[[nodiscard]] std::unique_ptr<AllReduce> make_nccl_all_reduce(const Group& group, backend::Device& device,
                                                              double timeout_seconds);
/// Makes an AllReduce that copies device → host, calls MPI_Iallreduce, and copies host → device. This AllReduce serves
/// ranks that share a device or have no NCCL. All ranks get the same bits.
[[nodiscard]] std::unique_ptr<AllReduce> make_staged_all_reduce(const Group& group, backend::Device& device,
                                                                double timeout_seconds);

/// Collective over the worker. Makes the AllReduce of `kind`. For `none` and `automatic`, makes the AllReduce of kind
/// `mpi`.
[[nodiscard]] std::unique_ptr<AllReduce> make_all_reduce(cluster::AllReduceKind kind, const Group& group,
                                                         backend::Device& device, double timeout_seconds);

/// Collective over the worker. Sums known numbers once, as gradients are summed. Throws Error if this rank gets a wrong
/// sum, or as AllReduce::wait() and synchronize() do. After an exception `all_reduce` has been given up. Does nothing
/// for a single rank.
void check_sum(AllReduce& all_reduce, const Group& group, backend::Device& device);

}  // namespace finch::comm
