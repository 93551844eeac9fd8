#pragma once

#include "finch/comm/node_memory.hpp"
#include "finch/data/dataset.hpp"

#include <optional>

namespace finch::run {

/// The data on this rank. The ranks of a node share one set (training or test), which is stored in `memory`.
struct LoadedData {
    comm::Communicator node;
    std::optional<comm::NodeMemory> memory;
    data::Datasets sets;  ///< the set that is not shared: on world rank 0 only
};

/// Collective over the world. One rank of each node reads or generates the data. All ranks of the node share the
/// training set, but each rank opens the files of streamed pixels itself. An exception on any rank is thrown on all
/// ranks. Throws ConfigError if data::load() refuses the data, StorageError if files cannot be read, and Error if two
/// nodes read different data.
[[nodiscard]] LoadedData load_on_each_node(const data::Options& options, std::uint64_t seed);

/// The sets that load_test_on_each_node() reads.
enum class Reads { both_sets, test_set };
/// Collective over the world. Does the same as load_on_each_node(), but the ranks of a node share the test set.
[[nodiscard]] LoadedData load_test_on_each_node(const data::Options& options, std::uint64_t seed, Reads reads);

}  // namespace finch::run
