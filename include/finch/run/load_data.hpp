#pragma once

#include "finch/comm/node_memory.hpp"
#include "finch/data/dataset.hpp"

#include <optional>

namespace finch::run {

/// Data on this rank, and the memory in which the set lies that the ranks of a node share.
struct LoadedData {
    comm::Communicator node;
    std::optional<comm::NodeMemory> memory;
    data::Datasets sets;  ///< the other set on world rank 0 alone
};

/// Collective over the world. One rank of each node reads or generates the data, and the node's ranks share its
/// training set; each opens the files of streamed pixels for itself. What goes wrong on any rank is thrown on all:
/// ConfigError for what data::load() refuses, StorageError for files that cannot be read, Error if two nodes read
/// different data.
[[nodiscard]] LoadedData load_on_each_node(const data::Options& options, std::uint64_t seed);

/// Collective over the world. The same, but that the node's ranks share the test set, and `reads` says whether there is
/// another.
enum class Reads { both_sets, test_set };
[[nodiscard]] LoadedData load_test_on_each_node(const data::Options& options, std::uint64_t seed, Reads reads);

}  // namespace finch::run
