#pragma once

#include "finch/search/gene.hpp"

#include <cstddef>
#include <vector>

/// Genomes as points of the unit cube, on which all propagators but the genetic one work.
namespace finch::search {

/// A coordinate per gene, as to_unit() gives it.
using UnitGenome = std::vector<double>;

[[nodiscard]] UnitGenome to_unit(const Space& space, const Genome& genome);
/// The genome of a point that was made from `parent`: what is active in it and was not in its parent is drawn.
[[nodiscard]] Genome child_genome(const Space& space, const UnitGenome& point, const UnitGenome& parent,
                                  RandomStream& random);
/// The genome of a point of its own.
[[nodiscard]] Genome from_unit(const Space& space, const UnitGenome& point);

/// Whether the distance of two values means nothing.
[[nodiscard]] bool is_choice(const Gene& gene);
/// The genes that have more than one value.
[[nodiscard]] std::vector<std::size_t> free_genes(const Space& space);

[[nodiscard]] UnitGenome random_point(std::size_t genes, RandomStream& random);

/// The squared distance; two different choices are 1 apart.
[[nodiscard]] double squared_distance(const Space& space, const UnitGenome& a, const UnitGenome& b);

/// `x` mirrored at the bounds until it lies in [0, 1].
[[nodiscard]] double reflect(double x);

/// One coordinate moved as the breeder genetic algorithm does (Mühlenbein and Schlierkamp-Voosen 1993): a real one by
/// half the range · 2^(−precision·u), or drawn anew with probability `anew`; where values are apart, by few of them; a
/// choice to another.
[[nodiscard]] double mutate_unit(const Gene& gene, double unit, double precision, double anew, RandomStream& random);

}  // namespace finch::search
