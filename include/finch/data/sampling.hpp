#pragma once

#include "finch/data/dataset.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace finch::data {

/// The images of one system that train, and how many samples of each epoch are of them.
struct SystemShare {
    std::int64_t begin = 0;  ///< places in Split::training: [begin, end)
    std::int64_t end = 0;
    std::int64_t samples = 0;
    bool operator==(const SystemShare&) const = default;
};

/// One for each system, or one of all where there is one set. Together an epoch has as many samples as images train:
/// without weights each system as many as it has, else in proportion to the weights, by largest remainder. Throws
/// ConfigError if a weight would give samples to a system of which no image trains, or none to one.
[[nodiscard]] std::vector<SystemShare> shares_of(const Options& options, const Dataset& set, const Split& split);

/// The places in Split::training of the samples of epoch `epoch` (0 is the first), in their order: a function of (seed,
/// individual, epoch).
/// - Where each share is all of its system: epoch_order() of all.
/// - Else system i goes through permutations of its images, one after the other, from epoch to epoch, so that at any
///   time none of them was seen twice more than another; the systems are mixed anew in each epoch.
[[nodiscard]] std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t individual, std::int64_t epoch,
                                                     std::span<const SystemShare> shares);

}  // namespace finch::data
