#include "finch/comm/group.hpp"

#include "comm/world_rank.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <ctime>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

using namespace finch;
using namespace finch::comm;
using finch::test::world_rank;

namespace {

std::vector<int> broadcasts;  ///< lengths in this rank's calls of MPI_Ibcast

/// Returns the group of this rank. Five ranks form two workers, with group ranks in reverse order: 4 3 2 | 1 0.
Group two_workers() {
    return {MPI_COMM_WORLD, world_rank() >= 2 ? 0 : 1, world_rank() >= 2 ? 4 - world_rank() : 1 - world_rank()};
}

Bytes pattern(std::size_t size, int salt) {
    Bytes bytes(size);
    for (std::size_t at = 0; at < size; ++at) {
        bytes[at] = static_cast<std::byte>(at * 31 + static_cast<std::size_t>(salt));
    }
    return bytes;
}

/// Returns every rank's bits of `value`, by world rank.
std::vector<std::uint64_t> all_bits(double value) {
    const auto mine = std::bit_cast<std::uint64_t>(value);
    std::vector<std::uint64_t> all(static_cast<std::size_t>(size_of(MPI_COMM_WORLD)));
    FINCH_MPI(MPI_Allgather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD));
    return all;
}

}  // namespace

/// Replaces MPI_Ibcast to record the length of each call.
extern "C" int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm communicator,
                          MPI_Request* request) {
    broadcasts.push_back(count);
    return PMPI_Ibcast(buffer, count, type, root, communicator, request);
}

TEST_CASE("Group: contains the ranks of its worker, ordered by group_rank") {
    const Group group = two_workers();

    CHECK(group.size() == (world_rank() >= 2 ? 3 : 2));
    CHECK(group.rank() == (world_rank() >= 2 ? 4 - world_rank() : 1 - world_rank()));
    CHECK(group.is_leader() == (world_rank() == 4 || world_rank() == 1));
}

TEST_CASE("Group: broadcast() gives the leader's bytes to every rank, for short and long messages") {
    const Group group = two_workers();
    for (const std::size_t size : {0UL, 1UL, 247UL, 248UL, 249UL, 100'000UL, 3UL}) {
        CAPTURE(size);
        const int salt = group.size();
        Bytes bytes = group.is_leader() ? pattern(size, salt) : pattern(17, 99);

        group.broadcast(bytes);

        CHECK(bytes == pattern(size, salt));
    }
}

TEST_CASE("Group: broadcast() splits long data into messages of at most the limit") {
    const Group group = two_workers();
    for (const std::size_t size : {100'000UL, 100'001UL, 999UL}) {
        CAPTURE(size);
        const int salt = group.size();
        Bytes bytes = group.is_leader() ? pattern(size, salt) : Bytes();
        broadcasts.clear();

        group.broadcast(bytes, 0, 1'000);

        CHECK(bytes == pattern(size, salt));
        CHECK(broadcasts.size() == 1 + (size + 999) / 1'000);  // the first call sends the length
        CHECK(*std::max_element(broadcasts.begin(), broadcasts.end()) == std::min<int>(1'000, static_cast<int>(size)));
    }
}

TEST_CASE("Group: maximum() returns the largest value of the worker, not of the world") {
    const Group group = two_workers();

    CHECK(group.maximum(world_rank()) == (world_rank() >= 2 ? 4 : 1));
    CHECK(group.maximum(-1 - world_rank()) == (world_rank() >= 2 ? -3 : -1));
}

TEST_CASE("Group: sum() adds in rank order, and every rank gets the same bits") {
    const Group group(MPI_COMM_WORLD, 0, world_rank());
    // 1e16 + 1 + 1 + … depends on the order of the additions: in rank order, each 1 is lost.
    const std::vector<double> parts{1e16, 1, 1, 1, -1e16};
    double in_order = 0;
    for (const double part : parts) {
        in_order += part;
    }
    std::vector<double> values{parts[static_cast<std::size_t>(world_rank())], 0.5, 1.0 / (1 + world_rank())};

    group.sum(values);

    CHECK(values[0] == in_order);
    CHECK(values[1] == 2.5);
    CHECK(values[2] == doctest::Approx(137.0 / 60));
    const auto bits = all_bits(values[2]);
    CHECK(bits == std::vector<std::uint64_t>(bits.size(), bits[0]));
}

TEST_CASE("Group: sum() of whole numbers is exact beyond the precision of a double") {
    const Group group(MPI_COMM_WORLD, 0, world_rank());
    std::vector<std::int64_t> values{(std::int64_t{1} << 53) + 1, world_rank()};

    group.sum(values);

    CHECK(values[0] == 5 * ((std::int64_t{1} << 53) + 1));
    CHECK(values[1] == 10);
}

TEST_CASE("Group: sum() is NaN on all ranks if one rank has a NaN") {
    const Group group(MPI_COMM_WORLD, 0, world_rank());
    std::vector<double> values{world_rank() == 3 ? std::numeric_limits<double>::quiet_NaN() : 1.0};

    group.sum(values);

    CHECK(std::isnan(values[0]));
}

TEST_CASE("Group: gather() returns the values of all ranks, in rank order") {
    const Group group = two_workers();
    const std::vector<double> mine{group.rank() + 0.25, group.rank() + 0.5};

    const std::vector<double> all = group.gather(mine);

    std::vector<double> expected{0.25, 0.5, 1.25, 1.5};
    if (group.size() == 3) {
        expected.insert(expected.end(), {2.25, 2.5});
    }
    CHECK(all == expected);
}

TEST_CASE("Group: in a group of one rank, no operation changes a value") {
    const Group group(MPI_COMM_WORLD, world_rank(), 0);
    Bytes bytes = pattern(300, world_rank());
    std::vector<double> values{1.5};
    std::vector<std::int64_t> counts{7};

    group.broadcast(bytes);
    group.sum(values);
    group.sum(counts);

    CHECK(bytes == pattern(300, world_rank()));
    CHECK(values == std::vector<double>{1.5});
    CHECK(counts == std::vector<std::int64_t>{7});
    CHECK(group.maximum(-4) == -4);
    CHECK(group.gather(values) == values);
}

namespace {

void say_gave_up(int late_rank) {
    if (world_rank() != late_rank) {
        FINCH_MPI(MPI_Send(nullptr, 0, MPI_BYTE, late_rank, 0, MPI_COMM_WORLD));
    }
}

void wait_until_others_gave_up() {
    for (int others = 1; others < size_of(MPI_COMM_WORLD); ++others) {
        FINCH_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

}  // namespace

TEST_CASE("Group: if a rank is missing, maximum() throws on the other ranks within the timeout and names the rank") {
    const Group group(MPI_COMM_WORLD, 0, world_rank(), 0.5);
    std::string said;

    if (world_rank() == 1) {
        wait_until_others_gave_up();  // its own call of maximum() then returns immediately
    }
    try {
        static_cast<void>(group.maximum(world_rank()));
    } catch (const Error& error) {
        said = error.what();
    }
    say_gave_up(1);
    FINCH_MPI(MPI_Barrier(MPI_COMM_WORLD));

    CHECK((world_rank() == 1 || said.find("workers.timeout_seconds") != std::string::npos));
    CHECK((world_rank() == 1 || said.find("there does not answer: rank 1 on ") != std::string::npos));
}

TEST_CASE("Group: if the leader is missing, broadcast() throws on the other ranks within the timeout and names it") {
    const Group group(MPI_COMM_WORLD, 0, world_rank(), 0.5);
    std::string said;
    Bytes bytes(10);

    if (world_rank() == 0) {
        wait_until_others_gave_up();
    }
    try {
        group.broadcast(bytes);
    } catch (const Error& error) {
        said = error.what();
    }
    say_gave_up(0);
    FINCH_MPI(MPI_Barrier(MPI_COMM_WORLD));

    CHECK((world_rank() == 0 || said.find("there does not answer: rank 0 on ") != std::string::npos));
}

TEST_CASE("Group: a rank that waits for a long time yields its core") {
    const Group group(MPI_COMM_WORLD, 0, world_rank());
    constexpr double late_seconds = 1;
    for (const bool at_a_broadcast : {true, false}) {
        static_cast<void>(group.maximum(0));
        const std::clock_t before = std::clock();
        if (group.is_leader()) {
            std::this_thread::sleep_for(std::chrono::duration<double>(late_seconds));
        }
        Bytes order(3);
        at_a_broadcast ? group.broadcast(order) : static_cast<void>(group.maximum(0));
        const double busy_seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;

        CHECK(busy_seconds < late_seconds / 4);
    }
}
