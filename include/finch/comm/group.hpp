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

/// The ranks of one worker. One Group serves the whole run. If a rank does not arrive within `timeout_seconds`, every
/// collective throws an Error that names the rank and its node.
class Group {
public:
    /// Collective over `world`. Ranks with equal `worker` form a group in the order of `group_rank`.
    Group(MPI_Comm world, int worker, int group_rank, double timeout_seconds = 60);

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return size_; }
    [[nodiscard]] bool is_leader() const noexcept { return rank_ == 0; }
    /// From now on, makes this rank sleep between two polls while it waits, because programs that it started need its
    /// core.
    void sleep_while_waiting() noexcept { sleeps_ = true; }
    [[nodiscard]] MPI_Comm get() const noexcept { return communicator_.get(); }

    /// Collective over the worker. Copies the leader's bytes to every rank in messages of at most `most` bytes; `most`
    /// must be equal on all ranks. A follower waits for `seconds` if that is more than the timeout.
    void broadcast(Bytes& bytes, double seconds = 0, std::size_t most = most_message_bytes) const;
    /// Collective over the worker. Returns the largest `value` of all ranks.
    [[nodiscard]] std::int64_t maximum(std::int64_t value) const;
    /// Collective over the worker. Returns the elementwise maximum over the ranks.
    [[nodiscard]] std::array<std::int64_t, 2> maximum(std::array<std::int64_t, 2> values) const;
    /// Collective over the worker. Computes the elementwise minimum over the ranks, in place. Sizes must be equal on
    /// all ranks.
    void minimum(std::span<double> values) const;
    /// Collective over the worker. Sums over the ranks, in place and in the order of ranks, so all ranks get the same
    /// bits.
    void sum(std::span<double> values) const;
    void sum(std::span<std::int64_t> values) const;
    /// Collective over the worker. Returns the `values` of all ranks, by rank, on every rank. All ranks must pass
    /// equally many values.
    [[nodiscard]] std::vector<double> gather(std::span<const double> values) const;

    /// Returns the ranks of this worker, with their nodes, that are not waiting for the same collective. Called after a
    /// collective timed out. Exchanges messages with the other ranks, which takes some seconds.
    [[nodiscard]] std::string who_is_missing() const;

private:
    /// The first packet of a broadcast. The packet is large enough for nearly every Order, because a second broadcast
    /// would double the time.
    struct Packet {
        std::uint64_t size = 0;
        std::array<std::byte, 248> bytes{};
    };
    void finish(MPI_Request& request, const char* what, double seconds = 0) const;

    Communicator communicator_;
    double timeout_seconds_;
    std::vector<std::string> names_;  ///< by rank: "rank 3 on n2", with the world rank
    /// The buffers of collectives. If a collective times out, the buffers are leaked, because MPI may still write to
    /// them.
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
