#pragma once

#include "finch/base/bytes.hpp"
#include "finch/comm/mpi.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace finch::comm {

/// Collective over `world`. Returns a communicator of the ranks of this node, in the order of `world`.
[[nodiscard]] Communicator split_by_node(MPI_Comm world);

/// Collective over `world`. Returns the name of each rank's node, by rank: Slurm's name, or the host name if a rank has
/// none. If several nodes share a host name, returns "HOST#1", "HOST#2" ….
[[nodiscard]] std::vector<std::string> names_of_nodes(MPI_Comm world);

/// Returns how many bytes of shared memory this node has free; the largest 64-bit number if that is not known.
[[nodiscard]] std::uint64_t free_shared_bytes();

struct WindowTraits {
    using type = MPI_Win;
    static type null() noexcept { return MPI_WIN_NULL; }
    static void destroy(type window) noexcept;
};

/// Memory that the ranks of a node share: one MPI-3 shared window that rank 0 fills and all ranks read. If the node has
/// too little shared memory or MPI provides no window, each rank has a copy that publish() updates.
class NodeMemory {
public:
    /// Collective over `node`, a communicator of ranks on one node. Only rank 0's `bytes` and `free_bytes` are used.
    NodeMemory(MPI_Comm node, std::size_t bytes, std::uint64_t free_bytes = free_shared_bytes());

    /// Returns the memory, aligned for every plain type. Rank 0 writes the memory before publish(); all ranks read the
    /// memory after publish().
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
    /// Collective over the node. Makes the bytes that rank 0 wrote visible to all ranks.
    void publish() const;
    /// Returns why every rank has a copy; empty if the ranks share one window or there is only one rank.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

private:
    /// Collective over the node. Allocates the window. True if all ranks have the window.
    [[nodiscard]] bool share(std::size_t bytes);

    MPI_Comm node_;
    UniqueHandle<WindowTraits> window_;
    Bytes own_;
    std::span<std::byte> bytes_;
    std::string problem_;
};

}  // namespace finch::comm
