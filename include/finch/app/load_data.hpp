#pragma once

#include "finch/comm/node_memory.hpp"
#include "finch/data/dataset.hpp"

#include <optional>

namespace finch::app {

/// The data of a run on this rank, and the memory in which the training set lies.
struct LoadedData {
    comm::Communicator node;
    std::optional<comm::NodeMemory> memory;
    data::Datasets sets;  ///< the test set on world rank 0 alone
};

/// Collective over the world. One rank of each node reads or generates the data, and the node's ranks share its
/// training set. What goes wrong on any rank is thrown on all: ConfigError for what data::load() refuses, Error where
/// two nodes read different data.
[[nodiscard]] LoadedData load_on_each_node(const data::Options& options, std::uint64_t seed);

}  // namespace finch::app
