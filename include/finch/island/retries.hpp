#pragma once

#include "finch/search/population.hpp"

#include <cstddef>
#include <deque>
#include <optional>

namespace finch::island {

/// The failed individuals of a worker that will be evaluated again, with the same genes under a new id. An individual
/// is not retried if its network cannot exist or it ran out of memory: it would fail again.
class Retries {
public:
    /// `most`: the number of retries per genome.
    explicit Retries(int most) : most_(most) {}

    /// Adds failed individuals of earlier starts on `island` that were not retried yet. Numbers these individuals from
    /// 0, and adds every `count`-th individual, beginning with number `place`.
    void recall(const search::Population& population, int island, std::size_t place, std::size_t count);
    /// Adds an individual that has ended, if it must be retried.
    void finished(const search::Individual& individual, const search::Population& population);
    /// Removes and returns the next individual to retry.
    [[nodiscard]] std::optional<search::Id> take();

private:
    [[nodiscard]] bool is_due(const search::Individual& individual, const search::Population& population) const;

    int most_;
    std::deque<search::Id> waiting_;
};

/// Returns `individual`, which has a new id, with the genes and the lineage of `failed`.
[[nodiscard]] search::Individual as_retry_of(search::Individual individual, const search::Individual& failed);

}  // namespace finch::island
