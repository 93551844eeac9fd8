#include "finch/comm/node_memory.hpp"

#include "finch/cluster/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>

using namespace finch::comm;

namespace {

constexpr std::size_t size = 100'000;

/// Returns whether every byte is `value`.
bool holds(const NodeMemory& memory, unsigned char value) {
    return std::ranges::all_of(memory.bytes(), [&](std::byte byte) { return byte == std::byte{value}; });
}

void fill(const NodeMemory& memory, unsigned char value) {
    if (rank_of(MPI_COMM_WORLD) == 0) {
        std::ranges::fill(memory.bytes(), std::byte{value});
    }
}

}  // namespace

TEST_CASE("names_of_nodes: the ranks of one machine are on one node, with Slurm's name or the machine's host name") {
    const auto ranks = static_cast<std::size_t>(size_of(MPI_COMM_WORLD));

    ::setenv("SLURMD_NODENAME", "gpu-1", 1);
    CHECK(names_of_nodes(MPI_COMM_WORLD) == std::vector<std::string>(ranks, "gpu-1"));
    if (rank_of(MPI_COMM_WORLD) == 0) {
        ::unsetenv("SLURMD_NODENAME");
    }
    CHECK(names_of_nodes(MPI_COMM_WORLD) == std::vector(ranks, finch::cluster::host_name()));
}

TEST_CASE("NodeMemory: all ranks of a node read rank 0's data in the same memory pages") {
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

TEST_CASE("NodeMemory: without enough shared memory, every rank has a copy, and problem() gives the reason") {
    const Communicator node = split_by_node(MPI_COMM_WORLD);
    const NodeMemory memory(node.get(), size, size / 2);
    fill(memory, 5);

    memory.publish();

    CHECK(memory.problem().find("MB of shared memory are free") != std::string::npos);
    CHECK(memory.bytes().size() == size);
    CHECK(holds(memory, 5));
}

TEST_CASE("NodeMemory: a size of 0 bytes is allowed") {
    const Communicator node = split_by_node(MPI_COMM_WORLD);

    const NodeMemory memory(node.get(), 0);
    memory.publish();

    CHECK(memory.bytes().empty());
}
