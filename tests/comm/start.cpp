#include "finch/base/clock.hpp"
#include "finch/comm/group.hpp"

#include <doctest/doctest.h>
#include <thread>

using namespace finch;
using namespace finch::comm;

namespace {

const std::vector<std::string> nodes{"n1", "n1", "n2"};

/// The message of the Error that check_start throws; empty where it throws none.
std::string refusal(double timeout_seconds) {
    try {
        check_start(MPI_COMM_WORLD, timeout_seconds, nodes);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

/// Ends once everybody has come, without keeping a core busy.
void meet() {
    MPI_Request request = MPI_REQUEST_NULL;
    FINCH_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request));
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
    CHECK(refusal(20) == "");
    CHECK(refusal(20) == "");
}

TEST_CASE("check_start: a rank that does not come is named with its node, within the deadline") {
    const int rank = rank_of(MPI_COMM_WORLD);
    const double before = steady_seconds();

    const std::string what = rank == 2 ? "" : refusal(0.4);
    const double seconds = steady_seconds() - before;
    meet();

    if (rank == 0) {
        CHECK(what.find("rank 2 on n2") != std::string::npos);
        CHECK(what.find("rank 1") == std::string::npos);
        CHECK(what.find("1 of 3 ranks") != std::string::npos);
        CHECK(what.find("0.4 s") != std::string::npos);
        CHECK(seconds >= 0.4);
        CHECK(seconds < 5);
    }
    if (rank == 1) {
        CHECK(what.find("rank 0 on n1") != std::string::npos);
        CHECK(seconds >= 0.5);
        CHECK(seconds < 5);
    }
}

TEST_CASE("check_start: the others do not wait for ever where rank 0 does not come") {
    const int rank = rank_of(MPI_COMM_WORLD);

    const std::string what = rank == 0 ? "" : refusal(0.2);
    meet();
    // The words that rank 0 has not taken, so that no later test finds them.
    for (int word = 0; rank == 0 && word < 2; ++word) {
        FINCH_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }

    CHECK((rank == 0) == what.empty());
    CHECK((rank == 0 || what.find("rank 0 on n1") != std::string::npos));
}
