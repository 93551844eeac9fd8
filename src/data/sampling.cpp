#include "finch/data/sampling.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

namespace finch::data {
namespace {

/// Divides `total` into whole numbers in proportion to the weights, by the largest remainder method. Of equal
/// remainders, the first one is rounded up.
std::vector<std::int64_t> apportion(std::int64_t total, const std::vector<double>& weights) {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<std::int64_t> parts;
    std::vector<double> remainders;
    for (const double weight : weights) {
        const double exact = static_cast<double>(total) * (weight / sum);
        parts.push_back(static_cast<std::int64_t>(exact));
        remainders.push_back(exact - std::floor(exact));
    }
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
    const std::int64_t left = total - std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
    for (std::int64_t i = 0; i < left; ++i) {
        ++parts[order[static_cast<std::size_t>(i) % order.size()]];
    }
    return parts;
}

void check_images(const SystemShare& share, const System& system, std::size_t number) {
    if (share.begin == share.end) {
        throw ConfigError(
            fmt::format("data.systems[{}]: none of the images of {} trains; accepted: a system with images "
                        "that train, or no weights",
                        number, system.path));
    }
}

void check_samples(const SystemShare& share, const System& system, std::size_t number, std::int64_t total) {
    if (share.samples == 0) {
        const std::string key = system.weight ? fmt::format("data.systems[{}].weight", number) : "data.auto_prob";
        const std::string weight = system.weight ? fmt::format("{}", *system.weight) : "a block";
        throw ConfigError(fmt::format("{}: {} gives {} none of the {} samples of an epoch; accepted: a larger share",
                                      key, weight, system.path, total));
    }
}

/// Returns the weight of each system. `shares`: with the images of the systems.
std::vector<double> weights_of(const Options& options, const std::vector<SystemShare>& shares) {
    std::vector<double> weights;
    if (options.system_blocks.empty()) {
        for (const System& system : options.systems) {
            weights.push_back(system.weight.value());
        }
        return weights;
    }
    for (const SystemBlock& block : options.system_blocks) {
        const auto images = [&](std::int64_t system) {
            const SystemShare& share = shares.at(static_cast<std::size_t>(system));
            return static_cast<double>(share.end - share.begin);
        };
        double sum = 0;
        for (std::int64_t system = block.first; system < block.end; ++system) {
            sum += images(system);
        }
        for (std::int64_t system = block.first; system < block.end; ++system) {
            weights.push_back(block.weight * images(system) / sum);
        }
    }
    return weights;
}

/// Appends the samples that one system contributes to epoch `epoch`, as places in Split::training. The permutations of
/// a system's images form an endless sequence; each epoch takes the next part of it.
void add_samples(std::uint64_t seed, std::int64_t epoch, const SystemShare& share, std::vector<std::uint32_t>& places) {
    const std::int64_t images = share.end - share.begin;
    std::int64_t next = epoch * share.samples;
    const std::int64_t end = next + share.samples;
    while (next < end) {
        const std::int64_t pass = next / images;
        const auto order = RandomStream(seed, Purpose::systems, static_cast<std::uint64_t>(pass))
                               .permutation(static_cast<std::uint32_t>(images));
        for (const std::int64_t stop = std::min(end, (pass + 1) * images); next < stop; ++next) {
            places.push_back(static_cast<std::uint32_t>(share.begin) + order[static_cast<std::size_t>(next % images)]);
        }
    }
}

bool is_whole(const SystemShare& share) {
    return share.samples == share.end - share.begin;
}

}  // namespace

std::vector<SystemShare> shares_of(const Options& options, const Dataset& set, const Split& split) {
    const std::int64_t total = std::ssize(split.training);
    std::vector<SystemShare> shares;
    std::int64_t begin = 0;
    for (const std::int64_t last : set.system_ends) {
        const auto end = std::lower_bound(split.training.begin(), split.training.end(), last) - split.training.begin();
        shares.push_back({begin, end, end - begin});
        begin = end;
    }
    if (shares.empty()) {
        shares.push_back({0, total, total});
    }
    if (!is_weighted(options)) {
        return shares;
    }
    for (std::size_t i = 0; i < shares.size(); ++i) {
        check_images(shares[i], options.systems[i], i);
    }
    const std::vector<std::int64_t> samples = apportion(total, weights_of(options, shares));
    for (std::size_t i = 0; i < shares.size(); ++i) {
        shares[i].samples = samples.at(i);
        check_samples(shares[i], options.systems[i], i, total);
    }
    return shares;
}

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t individual, std::int64_t epoch,
                                       std::span<const SystemShare> shares) {
    std::int64_t total = 0;
    for (const SystemShare& share : shares) {
        total += share.samples;
    }
    std::vector<std::uint32_t> order = epoch_order(seed, individual, epoch, total);
    if (std::all_of(shares.begin(), shares.end(), is_whole)) {
        return order;
    }
    std::vector<std::uint32_t> places;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        RandomStream own(seed, Purpose::systems, individual, static_cast<std::uint32_t>(i));
        const std::uint64_t high = own.bits();
        add_samples(high << 32 | own.bits(), epoch, shares[i], places);
    }
    std::transform(order.begin(), order.end(), order.begin(), [&](std::uint32_t place) { return places[place]; });
    return order;
}

}  // namespace finch::data
