#pragma once

#include "finch/base/bytes.hpp"
#include "finch/comm/mpi.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace finch::comm {

/// The ranks of one worker. One for the whole run. Only broadcast() waits as long as it takes, since an idle leader has
/// nothing to say; every other collective throws Error where a rank does not come within `timeout_seconds`.
class Group {
public:
    /// Collective over `world`. Ranks with equal `worker` form a group; `group_rank` orders them.
    Group(MPI_Comm world, int worker, int group_rank, double timeout_seconds = 60);

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return size_; }
    [[nodiscard]] bool is_leader() const noexcept { return rank_ == 0; }
    [[nodiscard]] MPI_Comm get() const noexcept { return communicator_.get(); }

    /// Collective over the worker. The leader's bytes, on every rank.
    void broadcast(Bytes& bytes) const;
    /// Collective over the worker. The largest of everybody's `value`.
    [[nodiscard]] std::int64_t maximum(std::int64_t value) const;
    /// Collective over the worker. Sums, in the order of ranks, so all get the same bits.
    void sum(std::span<double> values) const;
    void sum(std::span<std::int64_t> values) const;
    /// Collective over the worker. Everybody's `values` (the same length everywhere), by rank, on every rank.
    [[nodiscard]] std::vector<double> gather(std::span<const double> values) const;

private:
    void finish(MPI_Request& request, const char* what) const;

    Communicator communicator_;
    double timeout_seconds_;
    mutable std::int64_t agreement_ = 0;  ///< lives on where maximum() gives up and MPI still writes
    int rank_ = 0;
    int size_ = 1;
};

/// Collective over `world`. After the groups are formed: a barrier and an all-reduce of ones with a deadline. Throws
/// Error: on world rank 0 with the ranks and nodes that are missing, elsewhere a quarter of the timeout later, so that
/// rank 0, which knows more, speaks first. `node_of_rank`: the node's name, by world rank. Sleeps between its looks.
void check_start(MPI_Comm world, double timeout_seconds, std::span<const std::string> node_of_rank);

}  // namespace finch::comm
