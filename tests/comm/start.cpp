#include "finch/base/clock.hpp"
#include "finch/comm/phase.hpp"

#include <doctest/doctest.h>
#include <thread>

using namespace finch;
using namespace finch::comm;

namespace {

const std::vector<std::string> nodes{"n1", "n1", "n2"};

/// Returns the message of the Error that check_start throws in a phase of `seconds` seconds, or an empty text if it
/// throws none.
std::string refusal(MPI_Comm world, double seconds) {
    try {
        begin_phase("the start", seconds);
        check_start(world, nodes);
    } catch (const Error& error) {
        return error.what();
    }
    end_phase();
    return "";
}

/// Returns a duplicate of the world communicator. It is never freed, because collectives that some ranks never joined
/// remain pending on it.
MPI_Comm other_world() {
    static std::vector<Communicator> worlds;
    return worlds.emplace_back(duplicate(MPI_COMM_WORLD)).release();
}

/// Waits until all ranks have called this function. Unless `is_silent`, this rank meanwhile answers the questions of
/// other ranks.
void meet(bool is_silent = false) {
    MPI_Request request = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    if (!is_silent) {
        end_phase();
        wait_for(request);
        return;
    }
    for (int done = 0; done == 0;) {
        FINCH_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace

TEST_CASE("check_start: returns if all ranks call it, also if one is late, and can be repeated") {
    if (rank_of(MPI_COMM_WORLD) == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    CHECK(refusal(MPI_COMM_WORLD, 60) == "");
    CHECK(refusal(MPI_COMM_WORLD, 60) == "");
}

TEST_CASE("phase: world rank 0 names the missing rank and its node, but no rank that waits in another call") {
    const int rank = rank_of(MPI_COMM_WORLD);
    MPI_Comm world = other_world();
    const double before = steady_seconds();

    const std::string what = rank == 0 ? refusal(world, 0.4) : "";
    const double seconds = steady_seconds() - before;
    meet(rank == 2);

    if (rank == 0) {
        CHECK(what == "the start did not end within 0.4 s: 1 of 3 ranks did not come: rank 2 on n2");
        CHECK(seconds >= 0.4);
    }
}

TEST_CASE("phase: if all ranks wait in different calls, world rank 0 reports a possible network problem") {
    MPI_Comm world = other_world();
    const std::string what = rank_of(MPI_COMM_WORLD) == 0 ? refusal(world, 0.2) : "";
    meet();
    if (rank_of(MPI_COMM_WORLD) == 0) {
        CHECK(what.find("though all ranks came; is the network between the nodes open?") != std::string::npos);
    }
}

TEST_CASE("phase: a rank waits longer if world rank 0 answers, and otherwise names world rank 0") {
    const int rank = rank_of(MPI_COMM_WORLD);
    if (rank == 0) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    CHECK(refusal(MPI_COMM_WORLD, rank == 0 ? 60 : 0.5) == "");

    MPI_Comm world = other_world();
    const std::string what = rank == 0 ? "" : refusal(world, 0.2);
    meet(rank == 0);
    if (rank == 0) {
        end_phase();  // world rank 0 answers the remaining questions in its next wait
    } else {
        CHECK(what.find("the start did not end within 5.25 s: rank 0 on n1 does not answer") != std::string::npos);
    }
    meet();
}
