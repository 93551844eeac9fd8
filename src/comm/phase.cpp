#include "finch/comm/phase.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

// MPI does not tell which rank a collective waits for. A rank that has reached its phase's deadline therefore asks
// other ranks with empty messages, and ranks that wait answer. World rank 0 asks all ranks; the others ask world rank
// 0.

namespace finch::comm {
namespace {

constexpr int question_tag = 27181;  // do you wait for the others?
constexpr int answer_tag = 27182;    // I do

constexpr double seconds_to_answer = 5;

struct Phase {
    std::string what = "the start";
    double seconds = 0;
    double end = std::numeric_limits<double>::infinity();
    std::vector<std::string> node_of_rank;
    std::int64_t one = 1;  ///< not on the stack: after a timeout, MPI may still write
    std::int64_t sum = 0;
};

/// Returns the phase of this process. A process has one world and is in one phase at a time.
Phase& phase() {
    static Phase only;
    return only;
}

/// Receives an empty message with `tag` if one has arrived. Returns its sender, or −1.
int take_word(int tag) {
    int there = 0;
    MPI_Status status;
    FINCH_MPI(MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &status));
    if (there == 0) {
        return -1;
    }
    FINCH_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return status.MPI_SOURCE;
}

/// Sends an empty message. An empty message needs no buffer, so the sender need not wait for the end of the transfer.
void send_word(int to, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Isend(nullptr, 0, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request));
    FINCH_MPI(MPI_Request_free(&request));
}

void answer() {
    for (int rank = take_word(question_tag); rank >= 0; rank = take_word(question_tag)) {
        send_word(rank, answer_tag);
    }
}

std::string name(int rank) {
    const auto& nodes = phase().node_of_rank;
    const auto place = static_cast<std::size_t>(rank);
    return fmt::format("rank {} on {}", rank, place < nodes.size() ? nodes[place] : "an unknown node");
}

std::string names(const std::vector<int>& ranks) {
    constexpr std::size_t most = 8;
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < std::min(most, ranks.size()); ++i) {
        texts.push_back(name(ranks[i]));
    }
    if (ranks.size() > most) {
        texts.push_back(fmt::format("and {} more", ranks.size() - most));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
}

/// Returns the ranks of `asked` that do not answer within `seconds`. Returns none if `is_done` becomes true in the
/// meantime.
std::vector<int> silent(std::vector<int> asked, double seconds, const std::function<bool()>& is_done) {
    for (const int rank : asked) {
        send_word(rank, question_tag);
    }
    for (const double end = steady_seconds() + seconds; !asked.empty() && steady_seconds() < end;) {
        answer();
        for (int rank = take_word(answer_tag); rank >= 0; rank = take_word(answer_tag)) {
            std::erase(asked, rank);
        }
        if (is_done()) {
            return {};
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return asked;
}

/// Throws an Error that names the silent ranks. World rank 0 asks all ranks. Every other rank asks only world rank 0.
/// If world rank 0 answers, the other rank extends its deadline and lets world rank 0 find the silent ranks.
void ask_around(const std::function<bool()>& is_done) {
    if (rank_of(MPI_COMM_WORLD) != 0) {
        // The phase of world rank 0 may end later, and world rank 0 then has to ask the others.
        const double extra_seconds = seconds_to_answer + std::min(seconds_to_answer, phase().seconds / 4);
        if (!silent({0}, extra_seconds, is_done).empty()) {
            throw Error(fmt::format("{} did not end within {} s: {} does not answer", phase().what,
                                    phase().seconds + extra_seconds, name(0)));
        }
        phase().end = steady_seconds() + extra_seconds;
        return;
    }
    const int ranks = size_of(MPI_COMM_WORLD);
    std::vector<int> others;
    for (int rank = 1; rank < ranks; ++rank) {
        others.push_back(rank);
    }
    const std::vector<int> missing = silent(others, seconds_to_answer, is_done);
    if (is_done()) {
        return;
    }
    if (missing.empty()) {
        throw Error(
            fmt::format("{} did not end within {} s, though all ranks came; is the network between the nodes "
                        "open?",
                        phase().what, phase().seconds));
    }
    throw Error(fmt::format("{} did not end within {} s: {} of {} ranks did not come: {}", phase().what,
                            phase().seconds, missing.size(), ranks, names(missing)));
}

}  // namespace

void begin_phase(const std::string& what, double seconds) {
    phase().what = what;
    phase().seconds = seconds;
    phase().end = steady_seconds() + seconds;
}

void end_phase() noexcept {
    phase().end = std::numeric_limits<double>::infinity();
}

void wait_until(const std::function<bool()>& is_done) {
    constexpr double seconds_awake = 0.001;  // a longer wait sleeps: another rank may need the core
    for (const double begin = steady_seconds(); !is_done();) {
        answer();
        const double now = steady_seconds();
        if (now > phase().end) {
            ask_around(is_done);
        }
        if (now > begin + seconds_awake) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
    }
}

void wait_for(MPI_Request request) {
    wait_until([&] {
        int done = 0;
        FINCH_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        return done != 0;
    });
}

void check_start(MPI_Comm world, std::span<const std::string> node_of_rank) {
    phase().node_of_rank.assign(node_of_rank.begin(), node_of_rank.end());
    MPI_Request request = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Iallreduce(&phase().one, &phase().sum, 1, MPI_INT64_T, MPI_SUM, world, &request));
    wait_for(request);
    if (phase().sum != size_of(world)) {
        throw Error(fmt::format("the all-reduce of ones over {} ranks gave {}", size_of(world), phase().sum));
    }
}

}  // namespace finch::comm
