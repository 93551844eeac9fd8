#pragma once

#include "finch/data/dataset.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace finch::data {

/// The training images of one system (one of several data sets), and the number of samples that an epoch takes from
/// them.
struct SystemShare {
    std::int64_t begin = 0;  ///< places in Split::training: [begin, end)
    std::int64_t end = 0;
    std::int64_t samples = 0;
    bool operator==(const SystemShare&) const = default;
};

/// Returns the share of each system, or one share if there is only one set. An epoch has as many samples as there are
/// training images. If the systems have no weights, each contributes as many samples as it has training images. If the
/// systems have weights, the samples are distributed in proportion to the weights (largest remainder method). Throws
/// ConfigError if a system with a weight has no training images or gets no samples.
[[nodiscard]] std::vector<SystemShare> shares_of(const Options& options, const Dataset& set, const Split& split);

/// Returns the samples of epoch `epoch` (0 is the first) in order, as places in Split::training. The result depends
/// only on (seed, individual, epoch). If every share has all images of its system, the result is epoch_order() of all
/// images. If a system's share is smaller or larger, each system goes through permutations of its images. A permutation
/// continues in the next epoch. At any time, two images of a system have been used equally often, or one of them once
/// more. Each epoch mixes the samples of all systems in a new order.
[[nodiscard]] std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t individual, std::int64_t epoch,
                                                     std::span<const SystemShare> shares);

}  // namespace finch::data
