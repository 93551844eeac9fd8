#pragma once

#include "finch/base/bytes.hpp"
#include "finch/base/named_array.hpp"
#include "finch/comm/group.hpp"
#include "finch/search/individual.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace finch::evaluate {

/// What a leader tells its group to do next. A follower never reads a clock or a message of another worker: it does
/// what the Order says, and so a group cannot split. A signal that reached a follower goes up with its answer.
struct Order {
    enum class Kind : std::uint32_t { start, advance, snapshot, release, wait, report, dismiss };
    struct Steps {
        std::uint32_t slot = 0;
        std::uint32_t count = 0;  ///< batches
        double seconds = 0;       ///< that the batches before these took the leader, in this start
    };

    Kind kind = Kind::dismiss;
    std::uint32_t slot = 0;           ///< start, snapshot, release
    std::vector<Steps> steps{};       ///< advance
    search::Individual individual{};  ///< start
    NamedArrays snapshot{};           ///< start: empty where it begins at the beginning
    NamedArrays weights{};            ///< start: that it begins with; empty where it draws its own
    /// Until the next Order, if that may take longer than the followers wait by themselves: a long operation of the
    /// leader alone, such as an archive.
    double seconds_to_next = 0;
};

/// An idle leader gives an Order to wait this often, so that its followers know that it lives and it hears of signals
/// that reached them alone.
inline constexpr double seconds_between_orders = 1;
/// Followers wait for an Order as long as this, or workers.timeout_seconds if that is more: three report intervals.
inline constexpr double seconds_of_silence = 30;

/// The answer of one rank, the larger is the worse: the group takes the largest. storage: images cannot be read, for no
/// fault of the individual.
enum class Status : std::int64_t { running, finished, pruned, diverged, out_of_memory, failed, storage };

/// Collective over the worker. The worst status. A stop that was asked of any rank is now asked of every rank.
[[nodiscard]] Status agree(const comm::Group& group, Status mine);

/// Collective over the worker.
[[nodiscard]] double sum(const comm::Group& group, double mine);

/// Collective over the worker. The leader's `order`, to its followers.
void send_order(const comm::Group& group, const Order& order);
/// Collective over the worker. Followers: the Order that comes after `last`.
[[nodiscard]] Order receive_order(const comm::Group& group, const Order& last);

[[nodiscard]] Bytes encode(const Order& order);
[[nodiscard]] Order decode_order(const Bytes& bytes);

}  // namespace finch::evaluate
