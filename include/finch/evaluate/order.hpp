#pragma once

#include "finch/base/bytes.hpp"
#include "finch/base/named_array.hpp"
#include "finch/comm/group.hpp"
#include "finch/search/individual.hpp"
#include "finch/train/profile.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace finch::evaluate {

/// Order of a leader to its group. A follower reads no clock and no message of another worker: it does what the Order
/// says, so a group cannot split. A signal that reached a follower is reported with its answer.
struct Order {
    /// advance: trains, or looks at programs. report: of a profile. signal: a stop, handed on to programs. end: of a
    /// program. wait: the leader lives. dismiss: the last.
    enum class Kind : std::uint32_t { start, advance, snapshot, signal, end, release, report, wait, dismiss };
    struct Steps {
        std::uint32_t slot = 0;
        std::uint32_t count = 0;  ///< batches
        double seconds = 0;       ///< that the batches before these took the leader, in this start
    };

    /// Answers to a program's questions whether to stop: `decided` so far, "go on" for those before `stop_from`.
    struct Answers {
        std::uint64_t decided = 0;
        std::uint64_t stop_from = 0;
    };

    Kind kind = Kind::dismiss;
    std::uint32_t slot = 0;           ///< start, snapshot, end, release
    std::vector<Steps> steps{};       ///< advance, of trainings
    std::vector<Answers> answers{};   ///< advance, of programs: by slot
    search::Individual individual{};  ///< start
    NamedArrays snapshot{};           ///< start: empty if it begins at the beginning
    NamedArrays weights{};            ///< start: that it begins with; empty if it draws its own
    std::int32_t port = 0;            ///< start of a program: free on the leader's node
    bool resumes = false;             ///< start of a program: an earlier start of the run began it
    double grace_seconds = 0;         ///< end
    bool ends_programs = false;       ///< release: a persistent program is not kept
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
/// Collective over the worker. Followers: receives Orders and has `obey` do them, until they are dismissed. `profile`
/// measures the waiting; null: not measured.
void follow(const comm::Group& group, const std::function<void(const Order&)>& obey, train::Profile* profile = nullptr);

/// Collective over the worker. Obeys an Order on a rank that takes no part in evaluations: it only shows that it lives.
void obey_alone(const comm::Group& group, const Order& order);

[[nodiscard]] Bytes encode(const Order& order);
[[nodiscard]] Order decode_order(const Bytes& bytes);

}  // namespace finch::evaluate
