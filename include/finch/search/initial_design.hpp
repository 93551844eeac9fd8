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

/// The positions of a run's first individuals: random, points of a Sobol sequence, or points of a Latin hypercube.
enum class Start { random, sobol, latin };
constexpr std::array<std::string_view, 3> words_of(Start) {
    return {"random", "sobol", "latin"};
}

/// A genome that the user proposes: one value per gene, or nothing if the gene is to be drawn.
using Guess = std::vector<std::optional<double>>;

/// The initial points of a run, which give the first individuals their genes before the propagator breeds, and the
/// constraints on the genes of all individuals. Plain data: open() depends on its arguments and the members only.
///
/// The initial points are numbered: the guesses first, then the points of the start. island::initial_points_left()
/// lists the points that no individual has taken yet.
struct InitialDesign {
    Space space{};
    std::vector<Guess> guesses{};
    Start start = Start::random;
    std::uint32_t points = 0;  ///< number of points of the start
    std::vector<Constraint> constraints{};
    std::uint64_t seed = 1;

    [[nodiscard]] std::uint32_t initial_points() const noexcept {
        return static_cast<std::uint32_t>(guesses.size()) + points;
    }
    /// Breeds the individual of an initial point. An individual from a guess has the operator `given`; its genes
    /// without a proposed value are drawn. `attempt`: the number of earlier genomes for this point that were ruled out.
    /// A point of the start gives only one genome; later attempts for the same point give random genomes.
    [[nodiscard]] Offspring open(std::uint32_t initial_point, std::uint32_t attempt, RandomStream& random) const;

    /// Returns whether `genome` satisfies the constraints.
    [[nodiscard]] bool allows(const Genome& genome) const { return all_hold(constraints, space, genome); }
};

/// Returns the number of points of a start: `population` minus the number of guesses. `population`: the number of best
/// individuals from which the propagator breeds.
[[nodiscard]] std::uint32_t points_of(Start start, std::size_t population, std::size_t guesses) noexcept;

/// Maximum number of genes for Sobol points.
inline constexpr std::size_t most_sobol_genes = 21;

/// Returns point `number` of a start with `count` points: one coordinate in [0, 1) for each of `genes` genes. The
/// result depends on nothing but the arguments. With `sobol`, the points are Sobol's sequence with the direction
/// numbers of Joe and Kuo (Constructing Sobol sequences with better two-dimensional projections, 2008;
/// new-joe-kuo-6.21201). A random digital shift is applied to each dimension (Owen 1998). Of 2^k consecutive Sobol
/// points that begin at a multiple of 2^k, there is one in each of 2^k equal intervals of every gene. With `latin`,
/// there is one point in each of `count` equal intervals of every gene (McKay, Beckman and Conover 1979). Throws Error
/// for a `random` start, if `number` is not below `count`, or for Sobol points of more than most_sobol_genes genes.
[[nodiscard]] std::vector<double> start_point(Start start, std::uint64_t seed, std::uint32_t number,
                                              std::uint32_t count, std::size_t genes);

}  // namespace finch::search
