#pragma once

#include "finch/backend/device.hpp"
#include "finch/cluster/layout.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"

#include <cstdint>
#include <string>

/// What finch plan says of memory.
namespace finch::app {

/// The networks that the space was found to have. Bytes are those of the one that takes most, on one rank.
struct Networks {
    std::size_t tried = 0;
    std::size_t possible = 0;
    std::int64_t fewest_parameters = 0;
    std::int64_t most_parameters = 0;
    std::int64_t training_bytes = 0;
    std::int64_t prefetch_bytes = 0;  ///< of the host, beside them
    std::int64_t snapshot_bytes = 0;
    std::int64_t test_bytes = 0;  ///< on the test set
};
[[nodiscard]] Networks try_networks(const config::Config& config, const data::Dataset& images, backend::Device& device);

/// Memory of a node while CPUs train, at most.
struct NodeMemory {
    double bytes = 0;
    int ranks = 0;       ///< on the node that has most of them
    long long cpus = 1;  ///< of each rank
    /// The memory to ask Slurm for, which counts more than the program: for the node, and per CPU if each rank has so
    /// many.
    [[nodiscard]] std::int64_t asked_mebibytes() const;
    [[nodiscard]] std::int64_t asked_mebibytes_per_cpu(long long cpus_of_rank) const;
};
[[nodiscard]] NodeMemory node_memory(const config::Config& config, const cluster::Layout& layout,
                                     const Networks& networks, const data::Datasets& datasets);

/// For networks on CPUs what to ask Slurm for, per node and per CPU; else what Finch itself takes.
[[nodiscard]] std::string memory_text(const config::Config& config, const NodeMemory& memory);

/// Suggests data.memory: streamed if pixels are most of the memory.
[[nodiscard]] std::string pixels_text(const data::Options& options, const data::Dataset& training);

/// Rounded up.
[[nodiscard]] std::int64_t mebibytes(double bytes);

}  // namespace finch::app
