#pragma once

#include "finch/search/population.hpp"

#include <cstddef>
#include <deque>
#include <optional>

namespace finch::island {

/// The individuals of a worker whose evaluation failed, and whose genes are to be evaluated again under a new id. What
/// failed for want of a network that can exist, or of memory, is not: it would fail again.
class Retries {
public:
    /// `most`: how often each genome is tried again.
    explicit Retries(int most) : most_(most) {}

    /// Adds failed individuals of earlier starts that were not tried again yet: each `count`-th of the island's, from
    /// the `place`-th on.
    void recall(const search::Population& population, int island, std::size_t place, std::size_t count);
    /// Hears of an individual that has ended.
    void finished(const search::Individual& individual, const search::Population& population);
    /// The next to be tried again.
    [[nodiscard]] std::optional<search::Id> take();

private:
    [[nodiscard]] bool is_due(const search::Individual& individual, const search::Population& population) const;

    int most_;
    std::deque<search::Id> waiting_;
};

/// The same genes once more: `individual`, of a new id, takes them and their lineage from `failed`.
[[nodiscard]] search::Individual as_retry_of(search::Individual individual, const search::Individual& failed);

}  // namespace finch::island
