#pragma once

#include "finch/base/bytes.hpp"
#include "finch/base/named_array.hpp"
#include "finch/comm/group.hpp"
#include "finch/search/individual.hpp"

#include <cstdint>

namespace finch::evaluate {

/// A leader's order to its group. A follower reads no clock and no messages of other workers. Followers only obey
/// Orders, so all ranks of a group act alike. A follower's answer reports signals that the follower received.
struct Order {
    /// advance: train, or poll the programs. report: collect a profile. signal: forward a stop to programs. end:
    /// terminate a program. wait: do nothing; shows that the leader is alive. dismiss: the last Order.
    enum class Kind : std::uint32_t { start, advance, snapshot, signal, end, release, report, wait, dismiss };

    /// Answers to a program's questions whether to stop. `decided` questions are answered so far: "go on" before
    /// question `stop_from`, "stop" from that question on.
    struct Answers {
        std::uint64_t decided = 0;
        std::uint64_t stop_from = 0;
    };

    Kind kind = Kind::dismiss;
    std::uint32_t slot = 0;           ///< for start, advance, snapshot, end, release
    std::uint32_t batches = 0;        ///< for advance of a training
    double worked = 0;                ///< for advance: the leader's seconds for the evaluation until now, in this start
    Answers answers{};                ///< for advance of a program
    search::Individual individual{};  ///< for start
    NamedArrays snapshot{};           ///< for start; empty: the training does not resume
    bool continues_parent = false;    ///< for start: `snapshot` is of another individual's training
    NamedArrays weights{};            ///< for start: initial weights; empty: random ones
    std::int32_t port = 0;            ///< for start of a program: a free port on the leader's node
    bool resumes = false;             ///< for start of a program: an earlier start of the run began it
    double grace_seconds = 0;         ///< for end
    bool ends_programs = false;       ///< for release: also end a persistent program
    /// Seconds until the next Order if the leader begins a long operation, for example an archive. 0: the followers use
    /// their usual timeout.
    double seconds_to_next = 0;
};

/// Interval in seconds at which an idle leader sends an Order of kind `wait`. The Order shows the followers that the
/// leader is alive. The followers' answers report signals that the leader itself did not receive.
inline constexpr double seconds_between_orders = 1;
/// The seconds that followers wait for an Order: three report intervals. If workers.timeout_seconds is longer,
/// followers wait for that time.
inline constexpr double seconds_of_silence = 30;

/// The state of an evaluation on one rank. A larger value is worse, and the group takes the largest value of its ranks.
/// port_taken: the program's MASTER_PORT was in use. not_started: the program could not be started. storage: files
/// failed; the individual is not at fault.
enum class Status : std::int64_t {
    running,
    finished,
    pruned,
    diverged,
    out_of_memory,
    failed,
    port_taken,
    not_started,
    storage
};

/// The answer of all ranks together to an Order.
struct Answer {
    bool runs = true;  ///< the evaluation, on at least one rank
    Status status = Status::running;
    bool was_signalled = false;  ///< a signal from outside of Finch ended the program on a rank
};

/// Collective over the worker. Returns the worst status of all ranks. If any rank received a stop request, requests the
/// stop on every rank.
[[nodiscard]] Status agree(const comm::Group& group, Status mine);

[[nodiscard]] Bytes encode(const Order& order);
[[nodiscard]] Order decode_order(const Bytes& bytes);

}  // namespace finch::evaluate
