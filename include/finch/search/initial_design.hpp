#pragma once

#include "finch/search/constraint.hpp"
#include "finch/search/propagator.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace finch::search {

/// Positions of a run's first individuals: random; Sobol's points; a latin hypercube.
enum class Start { random, sobol, latin };
constexpr std::array<std::string_view, 3> words_of(Start) {
    return {"random", "sobol", "latin"};
}

/// A proposed individual: a value per gene; nothing if it is drawn.
using Guess = std::vector<std::optional<double>>;

/// How a run's first individuals get their genes, before its propagator breeds, and the constraints on the genes of all
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

/// Genes for which there are Sobol points.
inline constexpr std::size_t most_sobol_genes = 21;

/// Point `number` of a start that has `count`, in [0, 1) for each of `genes`: a function of its arguments. `sobol`:
/// Sobol's sequence with the direction numbers of Joe and Kuo (Constructing Sobol sequences with better two-dimensional
/// projections, 2008; new-joe-kuo-6.21201), each dimension shifted by random bits (Owen 1998's digital shift); any 2^k
/// points from a multiple of 2^k on have one in each of 2^k shares of every gene. `latin`: a point in each of `count`
/// shares of every gene (McKay, Beckman and Conover 1979). Throws Error if there are more genes than
/// most_sobol_genes, or `number` is no point; not for `random`.
[[nodiscard]] std::vector<double> start_point(Start start, std::uint64_t seed, std::uint32_t number,
                                              std::uint32_t count, std::size_t genes);

}  // namespace finch::search
