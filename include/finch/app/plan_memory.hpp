#pragma once

#include "finch/backend/device.hpp"
#include "finch/cluster/layout.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"

#include <cstdint>
#include <string>

/// The memory estimates of finch plan.
namespace finch::app {

/// Statistics of the networks in the search space that keep the limit on `parameters`; others are never trained. Each
/// byte count is the maximum over these networks, on one rank.
struct Networks {
    std::size_t tried = 0;
    std::size_t possible = 0;
    std::size_t too_large = 0;  ///< networks that break the limit on `parameters`
    std::int64_t fewest_parameters = 0;
    std::int64_t most_parameters = 0;
    std::int64_t training_bytes = 0;
    std::int64_t prefetch_bytes = 0;  ///< host memory, in addition to training_bytes
    std::int64_t snapshot_bytes = 0;
    std::int64_t test_bytes = 0;  ///< to measure the test set
    std::int64_t weights_bytes = 0;
    std::int64_t most_tensors = 0;
    std::int64_t most_epochs = 0;
    std::int64_t most_norms = 0;  ///< of an epoch, with training.watch
    bool inherits = false;        ///< weights are kept for children
};
[[nodiscard]] Networks try_networks(const config::Config& config, const data::Dataset& images, backend::Device& device);

/// An upper bound of the memory on a node while its CPUs train.
struct NodeMemory {
    double bytes = 0;
    int ranks = 0;       ///< on the node with the most ranks
    long long cpus = 1;  ///< per rank
    /// Returns the memory to request from Slurm: for the node, or per CPU if each rank has `cpus_of_rank` CPUs. This is
    /// more than `bytes`, because Slurm's limit also covers memory outside the ranks.
    [[nodiscard]] std::int64_t asked_mebibytes() const;
    [[nodiscard]] std::int64_t asked_mebibytes_per_cpu(long long cpus_of_rank) const;
};
[[nodiscard]] NodeMemory node_memory(const config::Config& config, const cluster::Layout& layout,
                                     const Networks& networks, const data::Datasets& datasets);

/// Returns the memory needs as text. For programs (CommandObjective), this is the memory of Finch itself. Otherwise it
/// is the memory to request from Slurm, per node and per CPU.
[[nodiscard]] std::string memory_text(const config::Config& config, const NodeMemory& memory);

/// Returns a hint to set data.memory: streamed if the pixels take 1 GiB or more; otherwise an empty text.
[[nodiscard]] std::string pixels_text(const data::Options& options, const data::Dataset& training);

/// Converts bytes to MiB, rounded up.
[[nodiscard]] std::int64_t mebibytes(double bytes);

}  // namespace finch::app
