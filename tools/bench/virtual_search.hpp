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

/// The course of a simulated training.
struct Course {
    bool diverges = false;       ///< true if the training diverges after the last of `losses`
    double seconds = 0;          ///< duration of an epoch
    std::vector<double> losses;  ///< the loss after each epoch; at least one
    std::int64_t parameters = 0;
    double joules = 0;              ///< of an epoch
    std::vector<double> metrics{};  ///< of the whole training, for costs that are metrics
};

struct VirtualSearch {
    static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

    search::Space space;
    search::PropagatorOptions propagator;
    std::vector<search::Cost> costs{};  ///< minimised in addition to the loss
    search::PruningOptions pruning = search::NoPruning{};
    std::optional<search::FinalChoice> final_choice{};  ///< if set, it uses the last of the `evaluations`
    std::int32_t workers = 1;
    std::int64_t evaluations = unlimited;  ///< the largest number of evaluations; set it, or set `epochs`
    std::int64_t epochs = unlimited;       ///< the largest number of epochs of all evaluations together
    std::int64_t epochs_each = 1;          ///< epochs of a complete evaluation
    std::uint64_t seed = 1;
    std::function<Course(const search::Genome&, search::Id)> course;
};

struct Found {
    std::optional<search::Individual> best;  ///< the complete individual with the best measurement, or the final choice
    std::vector<search::Individual> all{};   ///< the complete individuals
    std::int64_t epochs = 0;                 ///< trained by all evaluations together
    std::int64_t begun = 0;
    std::int64_t complete = 0;
};

/// Runs one search with simulated workers in virtual time. There is one island. All workers know every rung and every
/// result immediately.
[[nodiscard]] Found run(const VirtualSearch& search);

/// Returns the default options of the propagator `name`. The population of `genetic` is the number of workers.
/// `propulate` is `genetic` with twice this population, as in Propulate's tutorials. `auto:N` is `auto` that switches
/// to `evolution` after N results. `cmaes:N` is `cmaes` with N samples per generation. Throws std::runtime_error if
/// there is no propagator of this name.
[[nodiscard]] search::PropagatorOptions propagator_named(const std::string& name, std::int64_t workers);

}  // namespace finch::bench
