#pragma once

#include "finch/base/bytes.hpp"
#include "finch/comm/mpi.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace finch::comm {

/// Collective over `world`. The ranks of this node, in the order of `world`.
[[nodiscard]] Communicator split_by_node(MPI_Comm world);

/// Collective over `world`. The name of each rank's node, by rank: its host's name; Slurm's name of the node where
/// several have that one, or else "HOST#1", "HOST#2" ….
[[nodiscard]] std::vector<std::string> names_of_nodes(MPI_Comm world);

/// Bytes that the free space for shared memory on this node allows, where that can be told.
[[nodiscard]] std::uint64_t free_shared_bytes();

struct WindowTraits {
    using type = MPI_Win;
    static type null() noexcept { return MPI_WIN_NULL; }
    static void destroy(type window) noexcept;
};

/// Memory that the ranks of a node have in common: one MPI-3 shared window that rank 0 fills and all read. Where there
/// is no room for one, or MPI has none, a copy on each rank, which publish() brings up to date.
class NodeMemory {
public:
    /// Collective over `node`, whose ranks share a node. `bytes` and `free_bytes` count on rank 0 alone.
    NodeMemory(MPI_Comm node, std::size_t bytes, std::uint64_t free_bytes = free_shared_bytes());

    /// Aligned for every plain type. Written on rank 0, before publish(); read everywhere, after it.
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
    /// Collective over the node.
    void publish() const;
    /// Why every rank has a copy; empty if they share one, or where there is one rank only.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

private:
    /// Collective over the node. Whether all have the window.
    [[nodiscard]] bool share(std::size_t bytes);

    MPI_Comm node_;
    UniqueHandle<WindowTraits> window_;
    Bytes own_;
    std::span<std::byte> bytes_;
    std::string problem_;
};

}  // namespace finch::comm
