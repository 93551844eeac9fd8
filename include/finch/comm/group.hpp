#pragma once

#include "finch/base/bytes.hpp"
#include "finch/comm/mpi.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace finch::comm {

/// The ranks of one worker. One for the whole run. Every collective throws Error if a rank does not come within
/// `timeout_seconds`, and names it with its node.
class Group {
public:
    /// Collective over `world`. Ranks with equal `worker` form a group; `group_rank` orders them.
    Group(MPI_Comm world, int worker, int group_rank, double timeout_seconds = 60);

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return size_; }
    [[nodiscard]] bool is_leader() const noexcept { return rank_ == 0; }
    /// From now on it sleeps between two looks while it waits: its core is for programs that it has started.
    void sleep_while_waiting() noexcept { sleeps_ = true; }
    [[nodiscard]] MPI_Comm get() const noexcept { return communicator_.get(); }

    /// Collective over the worker. The leader's bytes, on every rank, in messages of at most `most` bytes, the same on
    /// every rank. A follower waits `seconds` for the leader, if that is more than the timeout.
    void broadcast(Bytes& bytes, double seconds = 0, std::size_t most = most_message_bytes) const;
    /// Collective over the worker. The largest of everybody's `value`.
    [[nodiscard]] std::int64_t maximum(std::int64_t value) const;
    /// Collective over the worker. The elementwise maximum over the ranks.
    [[nodiscard]] std::array<std::int64_t, 2> maximum(std::array<std::int64_t, 2> values) const;
    /// Collective over the worker. The elementwise minimum over the ranks, in place; equal sizes on all.
    void minimum(std::span<double> values) const;
    /// Collective over the worker. Sums, in the order of ranks, so all get the same bits.
    void sum(std::span<double> values) const;
    void sum(std::span<std::int64_t> values) const;
    /// Collective over the worker. Everybody's `values` (the same length everywhere), by rank, on every rank.
    [[nodiscard]] std::vector<double> gather(std::span<const double> values) const;

    /// After a collective did not end in time: the ranks of this worker, with their nodes, that do not wait for it as
    /// this one does. Takes some seconds, in which the others are asked.
    [[nodiscard]] std::string who_is_missing() const;

private:
    /// First packet of a broadcast: an Order nearly always fits, and a second call would double its time.
    struct Packet {
        std::uint64_t size = 0;
        std::array<std::byte, 248> bytes{};
    };
    void finish(MPI_Request& request, const char* what, double seconds = 0) const;

    Communicator communicator_;
    double timeout_seconds_;
    std::vector<std::string> names_;  ///< by rank: "rank 3 on n2", of the world
    /// Given to MPI for good where a collective gives up, since MPI still writes there.
    struct Buffers {
        std::array<std::int64_t, 2> agreement{};
        Packet packet;
    };
    mutable std::unique_ptr<Buffers> buffers_ = std::make_unique<Buffers>();
    int rank_ = 0;
    int size_ = 1;
    bool sleeps_ = false;
};

}  // namespace finch::comm
