#pragma once

#include "finch/search/gene.hpp"

#include <cstddef>
#include <vector>

/// Genomes as points of the unit cube, on which all propagators but the genetic one work.
namespace finch::search {

/// A coordinate per gene, in [0, 1]: of a real gene its place between the bounds (of their logarithms for Scale::log),
/// of a whole number or a choice the middle of its part of the interval.
using UnitGenome = std::vector<double>;

[[nodiscard]] double to_unit(const Gene& gene, double value);
[[nodiscard]] double from_unit(const Gene& gene, double unit);
[[nodiscard]] UnitGenome to_unit(const Space& space, const Genome& genome);
[[nodiscard]] Genome from_unit(const Space& space, const UnitGenome& point);

[[nodiscard]] bool is_choice(const Gene& gene);
/// How many values a gene has; 0: a real one.
[[nodiscard]] std::int64_t levels(const Gene& gene);

[[nodiscard]] UnitGenome random_point(std::size_t genes, RandomStream& random);

/// The squared distance; two different choices are 1 apart.
[[nodiscard]] double squared_distance(const Space& space, const UnitGenome& a, const UnitGenome& b);

/// `x` mirrored at the bounds until it lies in [0, 1].
[[nodiscard]] double reflect(double x);

/// One coordinate moved as the breeder genetic algorithm does (Mühlenbein and Schlierkamp-Voosen 1993): a real one by
/// half the range · 2^(−precision·u), or drawn anew with probability `anew`; a whole number by few steps; a choice to
/// another.
[[nodiscard]] double mutate_unit(const Gene& gene, double unit, double precision, double anew, RandomStream& random);

}  // namespace finch::search
