#pragma once

#include "finch/search/final_choice.hpp"
#include "finch/search/propagator.hpp"
#include "finch/search/pruning.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace finch::bench {

/// How a training would go.
struct Course {
    bool diverges = false;       ///< after the last of `losses`
    double seconds = 0;          ///< of an epoch
    std::vector<double> losses;  ///< after each epoch, at least one
};

struct VirtualSearch {
    static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

    search::Space space;
    search::PropagatorOptions propagator;
    search::PruningOptions pruning = search::NoPruning{};
    std::optional<search::FinalChoice> final_choice{};  ///< the last of `evaluations`
    std::int32_t workers = 1;
    std::int64_t evaluations = unlimited;  ///< that begin, at most; one of the two budgets is limited
    std::int64_t epochs = unlimited;       ///< of all evaluations, after which the search ends
    std::int64_t epochs_each = 1;          ///< of a complete evaluation
    std::uint64_t seed = 1;
    std::function<Course(const search::Genome&, search::Id)> course;
};

struct Found {
    std::optional<search::Individual> best;  ///< of those that are complete, as they were measured; or the final choice
    std::int64_t begun = 0;
    std::int64_t complete = 0;
};

/// One search with simulated workers in virtual time: one island, and every rung and result is known at once to all.
[[nodiscard]] Found run(const VirtualSearch& search);

/// A propagator with its defaults. `genetic` breeds from as many as there are workers, `propulate` is the same from
/// twice as many, as Propulate's tutorials do. Throws std::runtime_error if there is none of this name.
[[nodiscard]] search::PropagatorOptions propagator_named(const std::string& name, std::int64_t workers);

}  // namespace finch::bench
