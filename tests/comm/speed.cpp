// Prints the cost of the calls in the main loop. The test sets no limits, because the cost depends on the machine.
// tests/cluster/environment.cpp tests that ranks of a crowded node yield their cores.
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/comm/group.hpp"
#include "finch/comm/mpi_mailbox.hpp"

#include <algorithm>
#include <chrono>
#include <doctest/doctest.h>
#include <thread>

using namespace finch;
using namespace finch::comm;

namespace {

/// Waits for all ranks in a barrier and sleeps between the tests. The cores remain free for ranks that are still busy.
void wait_asleep() {
    MPI_Request request = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    for (int done = 0; done == 0;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        FINCH_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    }
}

}  // namespace

TEST_CASE("Group: 20 000 orders and answers on 2 ranks are correct (prints their cost)") {
    const int rank = rank_of(MPI_COMM_WORLD);
    const Group group(MPI_COMM_WORLD, rank < 2 ? 0 : 1, rank);
    double microseconds = 0;
    if (rank < 2) {
        Bytes order(64);
        constexpr int rounds = 20'000;
        std::int64_t worst = 0;
        const double before = steady_seconds();
        for (int round = 0; round < rounds; ++round) {
            group.broadcast(order);
            worst = std::max(worst, group.maximum(round));
        }
        microseconds = (steady_seconds() - before) / rounds * 1e6;
        CHECK(worst == rounds - 1);
    }
    wait_asleep();

    MESSAGE(fmt::format("broadcast of 64 bytes and maximum, 2 ranks: {:.2f} us", microseconds));
}

TEST_CASE("mailbox: all messages of 10 migrants of 30 genes between 4 ranks arrive (prints their cost)") {
    const auto mailbox = make_mpi_mailbox(MPI_COMM_WORLD);
    const auto message = std::make_shared<const Bytes>(3200);
    constexpr int rounds = 2000;
    int taken = 0;
    FINCH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    const double before = steady_seconds();
    for (int round = 0; round < rounds; ++round) {
        for (int to = 0; to < mailbox->leaders(); ++to) {
            if (to != mailbox->self()) {
                mailbox->send(to, message, true);
            }
        }
        taken += static_cast<int>(mailbox->take().size());
    }
    mailbox->begin_closing();
    while (!mailbox->closed()) {
        taken += static_cast<int>(mailbox->take().size());
    }
    const double microseconds = (steady_seconds() - before) / (3.0 * rounds) * 1e6;

    MESSAGE(fmt::format("send and take of 3200 bytes, 4 ranks to 3 others each: {:.2f} us a message", microseconds));
    CHECK(taken == 3 * rounds);
}
