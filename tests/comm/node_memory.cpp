#include "finch/comm/node_memory.hpp"

#include "finch/cluster/environment.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace finch::comm;

namespace {

constexpr std::size_t size = 100'000;

/// Whether every byte is `value`.
bool holds(const NodeMemory& memory, unsigned char value) {
    return std::ranges::all_of(memory.bytes(), [&](std::byte byte) { return byte == std::byte{value}; });
}

void fill(const NodeMemory& memory, unsigned char value) {
    if (rank_of(MPI_COMM_WORLD) == 0) {
        std::ranges::fill(memory.bytes(), std::byte{value});
    }
}

}  // namespace

TEST_CASE("the ranks of one machine are on one node, which has its host's name") {
    const auto ranks = static_cast<std::size_t>(size_of(MPI_COMM_WORLD));

    CHECK(names_of_nodes(MPI_COMM_WORLD) == std::vector(ranks, finch::cluster::host_name()));
}

TEST_CASE("node memory: what rank 0 writes all ranks of its node read, in the same pages") {
    const Communicator node = split_by_node(MPI_COMM_WORLD);
    const NodeMemory memory(node.get(), rank_of(MPI_COMM_WORLD) == 0 ? size : 0);
    fill(memory, 7);

    memory.publish();

    CHECK(memory.problem() == "");
    CHECK(memory.bytes().size() == size);
    CHECK(holds(memory, 7));
    FINCH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (rank_of(MPI_COMM_WORLD) == 2) {
        memory.bytes()[0] = std::byte{9};
    }
    memory.publish();
    CHECK(memory.bytes()[0] == std::byte{9});
}

TEST_CASE("node memory: where there is no room for a window every rank has a copy, and is told why") {
    const Communicator node = split_by_node(MPI_COMM_WORLD);
    const NodeMemory memory(node.get(), size, size / 2);
    fill(memory, 5);

    memory.publish();

    CHECK(memory.problem().find("MB of shared memory are free") != std::string::npos);
    CHECK(memory.bytes().size() == size);
    CHECK(holds(memory, 5));
}

TEST_CASE("node memory: nothing to share") {
    const Communicator node = split_by_node(MPI_COMM_WORLD);

    const NodeMemory memory(node.get(), 0);
    memory.publish();

    CHECK(memory.bytes().empty());
}
