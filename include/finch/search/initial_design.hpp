#pragma once

#include "finch/search/constraint.hpp"
#include "finch/search/propagator.hpp"
#include "finch/search/start.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace finch::search {

/// A proposed individual: a value per gene; nothing if it is drawn.
using Guess = std::vector<std::optional<double>>;

/// How a run's first individuals come to their genes, before its propagator breeds, and what holds for those of all
/// individuals. Plain data; every breeding is a function of its arguments.
///
/// The initial points of a run are numbered: the guesses first, then the points of the start. Which individual takes
/// which: island::initial_points_left().
struct InitialDesign {
    Space space{};
    std::vector<Guess> guesses{};
    Start start = Start::random;
    std::uint32_t points = 0;  ///< of the start
    std::vector<Constraint> constraints{};
    std::uint64_t seed = 1;

    [[nodiscard]] std::uint32_t initial_points() const noexcept {
        return static_cast<std::uint32_t>(guesses.size()) + points;
    }
    /// The individual of an initial point. A guess has the operator `given`; what it leaves open is drawn. `attempt`
    /// counts those that could not be; a point of the start has one, after it come random genomes.
    [[nodiscard]] Offspring open(std::uint32_t initial_point, std::uint32_t attempt, RandomStream& random) const;

    /// Whether `genome` obeys the constraints.
    [[nodiscard]] bool allows(const Genome& genome) const { return all_hold(constraints, space, genome); }
};

/// How many points a start has for a propagator that breeds from the best `population`: as many as that, less the
/// guesses.
[[nodiscard]] std::uint32_t points_of(Start start, std::size_t population, std::size_t guesses) noexcept;

}  // namespace finch::search
