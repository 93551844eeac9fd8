#include "finch/comm/mpi.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace finch::comm;

TEST_CASE("check: a failed call throws ApiError with the call, the MPI error and the source line") {
    std::string what;
    try {
        FINCH_MPI(MPI_Send(nullptr, 0, MPI_BYTE, size_of(MPI_COMM_WORLD), 0, MPI_COMM_WORLD));
    } catch (const finch::ApiError& error) {
        what = error.what();
    }

    CHECK(what.find("MPI_Send(nullptr, 0, MPI_BYTE, size_of(MPI_COMM_WORLD)") != std::string::npos);
    CHECK(what.find("MPI_ERR_RANK") != std::string::npos);
    CHECK(what.find("mpi.cpp:") != std::string::npos);
}

TEST_CASE("duplicate: the copy is a separate communicator of the same ranks, and its errors throw") {
    const Communicator copy = duplicate(MPI_COMM_WORLD);

    int same = 0;
    FINCH_MPI(MPI_Comm_compare(copy.get(), MPI_COMM_WORLD, &same));
    CHECK(same == MPI_CONGRUENT);
    CHECK_THROWS_AS(FINCH_MPI(MPI_Send(nullptr, 0, MPI_BYTE, 99, 0, copy.get())), finch::ApiError);
}

TEST_CASE("gather_all: returns every rank's text in rank order, also empty texts and texts with zero bytes") {
    const int rank = rank_of(MPI_COMM_WORLD);
    const std::string mine(static_cast<std::size_t>(rank) * 3, static_cast<char>('a' + rank));

    const auto texts = gather_all(MPI_COMM_WORLD, mine);

    CHECK(texts == std::vector<std::string>{"", "bbb", "cccccc"});
    CHECK(gather_all(MPI_COMM_WORLD, std::string("x\0y", 3)).back().size() == 3);
    CHECK(gather_all(MPI_COMM_WORLD, "") == std::vector<std::string>(3));
}

TEST_CASE("broadcast: returns rank 0's text on every rank, and ignores the other ranks' texts") {
    const std::string mine = rank_of(MPI_COMM_WORLD) == 0 ? std::string(100'000, 'z') : "something else";

    CHECK(broadcast(MPI_COMM_WORLD, mine) == std::string(100'000, 'z'));
    CHECK(broadcast(MPI_COMM_WORLD, rank_of(MPI_COMM_WORLD) == 0 ? "" : "x").empty());
}

TEST_CASE("broadcast_bytes: sends the bytes of any root, in messages of limited size") {
    std::string text = rank_of(MPI_COMM_WORLD) == 2 ? "finch" : "?????";

    broadcast_bytes(MPI_COMM_WORLD, 2, std::as_writable_bytes(std::span(text)), 2);

    CHECK(text == "finch");
}

TEST_CASE("gather_all: splits long text into several messages") {
    const std::string mine(static_cast<std::size_t>(rank_of(MPI_COMM_WORLD)) * 3,
                           static_cast<char>('a' + rank_of(MPI_COMM_WORLD)));

    CHECK(gather_all(MPI_COMM_WORLD, mine, 4) == std::vector<std::string>{"", "bbb", "cccccc"});
}
