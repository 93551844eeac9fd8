// Measures the time of a message from one leader to another, from send() to take(). Two ranks send a message of 400
// bytes (a result of 20 genes) back and forth. The receiver polls its mailbox continuously, or every millisecond as an
// idle worker does.
//
//     mpirun -n 2 build/bench_mailbox [ROUND_TRIPS]
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"
#include "finch/comm/mpi_mailbox.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using namespace finch;

constexpr std::size_t message_bytes = 400;

void await(comm::Mailbox& mailbox, std::chrono::microseconds pause) {
    while (mailbox.take().empty()) {
        if (pause.count() > 0) {
            std::this_thread::sleep_for(pause);
        }
    }
}

/// Returns the sorted times in seconds, on rank 0. Rank 0 polls continuously. If rank 1 polls continuously, a time is
/// half a round trip. If rank 1 pauses between polls, a time is a round trip that begins at a random moment: the way
/// back takes little time.
std::vector<double> measure(comm::Mailbox& mailbox, int round_trips, std::chrono::microseconds pause) {
    const auto message = std::make_shared<const Bytes>(message_bytes);
    RandomStream random(1, Purpose::test);
    std::vector<double> seconds;
    for (int i = 0; i < round_trips; ++i) {
        if (mailbox.self() == 0) {
            std::this_thread::sleep_for(2 * random.uniform() * pause);
            const double start = steady_seconds();
            mailbox.send(1, message, true);
            await(mailbox, std::chrono::microseconds(0));
            seconds.push_back((steady_seconds() - start) / (pause.count() > 0 ? 1 : 2));
        } else {
            await(mailbox, pause);
            mailbox.send(0, message, true);
        }
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds;
}

}  // namespace

int main(int argc, char** argv) {
    comm::Session session(argc, argv);
    const int round_trips = argc > 1 ? std::atoi(argv[1]) : 3000;
    const comm::Communicator leaders = comm::make_leaders(MPI_COMM_WORLD, true, session.world_rank());
    const auto mailbox = comm::make_mpi_mailbox(leaders.get());
    for (const auto pause : {std::chrono::microseconds(0), std::chrono::microseconds(1000)}) {
        const std::vector<double> seconds = measure(*mailbox, round_trips, pause);
        if (session.world_rank() == 0) {
            fmt::print("{}: {:.1f} µs [{:.1f} … {:.1f}], median and quartiles of {}\n",
                       pause.count() > 0 ? "a look every millisecond" : "looking all the time",
                       1e6 * seconds[seconds.size() / 2], 1e6 * seconds[seconds.size() / 4],
                       1e6 * seconds[seconds.size() * 3 / 4], seconds.size());
        }
    }
    mailbox->begin_closing();
    while (!mailbox->closed()) {
        static_cast<void>(mailbox->take());
    }
    return 0;
}
