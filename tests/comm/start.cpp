#include "finch/base/clock.hpp"
#include "finch/comm/phase.hpp"

#include <doctest/doctest.h>
#include <thread>

using namespace finch;
using namespace finch::comm;

namespace {

const std::vector<std::string> nodes{"n1", "n1", "n2"};

/// The message of the Error that check_start throws within a phase of so many seconds; empty where it throws none.
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

/// A world of its own, never freed: a collective in which not all ranks took part stays open there.
MPI_Comm other_world() {
    static std::vector<Communicator> worlds;
    return worlds.emplace_back(duplicate(MPI_COMM_WORLD)).release();
}

/// Ends once everybody has come. Waits within the phase, so it answers who asks; or not.
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

TEST_CASE("check_start: passes where all ranks come, also when one is late, and can be repeated") {
    if (rank_of(MPI_COMM_WORLD) == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    CHECK(refusal(MPI_COMM_WORLD, 60) == "");
    CHECK(refusal(MPI_COMM_WORLD, 60) == "");
}

TEST_CASE("a phase: world rank 0 names who does not wait, with its node; who waits for something else is not named") {
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

TEST_CASE("a phase: where all wait, but not for the same, world rank 0 doubts the network") {
    MPI_Comm world = other_world();
    const std::string what = rank_of(MPI_COMM_WORLD) == 0 ? refusal(world, 0.2) : "";
    meet();
    if (rank_of(MPI_COMM_WORLD) == 0) {
        CHECK(what.find("though all ranks came; is the network between the nodes open?") != std::string::npos);
    }
}

TEST_CASE("a phase: a late rank waits on where world rank 0 does, and else names it") {
    const int rank = rank_of(MPI_COMM_WORLD);
    if (rank == 0) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    CHECK(refusal(MPI_COMM_WORLD, rank == 0 ? 60 : 0.5) == "");

    MPI_Comm world = other_world();
    const std::string what = rank == 0 ? "" : refusal(world, 0.2);
    meet(rank == 0);
    if (rank == 0) {
        end_phase();  // the questions that it has not answered it answers when it waits again
    } else {
        CHECK(what.find("the start did not end within 5.25 s: rank 0 on n1 does not answer") != std::string::npos);
    }
    meet();
}
