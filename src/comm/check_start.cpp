#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/comm/group.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>

namespace finch::comm {
namespace {

constexpr int here_tag = 27181;      // a rank to rank 0: I am here
constexpr int all_here_tag = 27182;  // rank 0 to each: all are here

/// Asks `done` until it says so. False where `seconds` pass before. Sleeps in between, for a start may take long.
bool wait_until(const std::function<bool()>& done, double seconds) {
    const double deadline = steady_seconds() + seconds;
    while (!done()) {
        if (!(steady_seconds() < deadline)) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
}

/// Takes an empty message with `tag` from `source` (or MPI_ANY_SOURCE), if one is there. Returns its sender, or −1.
int take_word(MPI_Comm world, int source, int tag) {
    int there = 0;
    MPI_Status status;
    FINCH_MPI(MPI_Iprobe(source, tag, world, &there, &status));
    if (there == 0) {
        return -1;
    }
    FINCH_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, tag, world, MPI_STATUS_IGNORE));
    return status.MPI_SOURCE;
}

/// An empty message needs no buffer, so nobody has to wait until it has left.
void send_word(MPI_Comm world, int to, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Isend(nullptr, 0, MPI_BYTE, to, tag, world, &request));
    FINCH_MPI(MPI_Request_free(&request));
}

std::string missing_text(const std::vector<char>& is_here, std::span<const std::string> node_of_rank) {
    std::vector<std::string> missing;
    for (std::size_t rank = 0; rank < is_here.size(); ++rank) {
        if (is_here[rank] == 0) {
            missing.push_back(fmt::format("rank {} on {}", rank,
                                          rank < node_of_rank.size() ? node_of_rank[rank] : "an unknown node"));
        }
    }
    constexpr std::size_t most = 8;
    const std::size_t count = missing.size();
    if (count > most) {
        missing.resize(most);
        missing.push_back(fmt::format("and {} more", count - most));
    }
    return fmt::format("{}", fmt::join(missing, ", "));
}

void barrier_with_deadline(MPI_Comm world, double timeout_seconds, std::span<const std::string> node_of_rank) {
    std::vector<char> is_here(static_cast<std::size_t>(size_of(world)), 0);
    is_here[0] = 1;
    std::size_t count = 1;
    const auto everybody_came = [&] {
        for (int rank = take_word(world, MPI_ANY_SOURCE, here_tag); rank >= 0;
             rank = take_word(world, MPI_ANY_SOURCE, here_tag)) {
            is_here[static_cast<std::size_t>(rank)] = 1;
            ++count;
        }
        return count == is_here.size();
    };
    if (!wait_until(everybody_came, timeout_seconds)) {
        throw Error(fmt::format("the start failed: {} of {} ranks did not come within {} s: {}", is_here.size() - count,
                                is_here.size(), timeout_seconds, missing_text(is_here, node_of_rank)));
    }
    for (int rank = 1; rank < static_cast<int>(is_here.size()); ++rank) {
        send_word(world, rank, all_here_tag);
    }
}

void enter_barrier(MPI_Comm world, double timeout_seconds, std::span<const std::string> node_of_rank) {
    send_word(world, 0, here_tag);
    const double seconds = timeout_seconds * 1.25;
    if (!wait_until([&] { return take_word(world, 0, all_here_tag) == 0; }, seconds)) {
        throw Error(fmt::format("the start failed: rank 0 on {} did not say within {} s that all ranks are there",
                                node_of_rank.empty() ? "an unknown node" : node_of_rank[0], seconds));
    }
}

/// A collective through every path of the network, with a known sum.
void add_ones(MPI_Comm world, double timeout_seconds) {
    struct Ones {
        std::int64_t one = 1;
        std::int64_t sum = 0;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    auto ones = std::make_unique<Ones>();
    FINCH_MPI(MPI_Iallreduce(&ones->one, &ones->sum, 1, MPI_INT64_T, MPI_SUM, world, &ones->request));
    const auto is_summed = [&] {
        int done = 0;
        FINCH_MPI(MPI_Test(&ones->request, &done, MPI_STATUS_IGNORE));
        return done != 0;
    };
    if (!wait_until(is_summed, timeout_seconds)) {
        (void)ones.release();  // MPI may still write there
        throw Error(
            fmt::format("the start failed: all ranks came, but an all-reduce over them did not end within {} s "
                        "(workers.timeout_seconds); is the network between the nodes open?",
                        timeout_seconds));
    }
    if (ones->sum != size_of(world)) {
        throw Error(
            fmt::format("the start failed: the all-reduce of ones over {} ranks gave {}", size_of(world), ones->sum));
    }
}

}  // namespace

void check_start(MPI_Comm world, double timeout_seconds, std::span<const std::string> node_of_rank) {
    if (rank_of(world) == 0) {
        barrier_with_deadline(world, timeout_seconds, node_of_rank);
    } else {
        enter_barrier(world, timeout_seconds, node_of_rank);
    }
    add_ones(world, timeout_seconds);
}

}  // namespace finch::comm
