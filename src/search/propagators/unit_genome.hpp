#pragma once

#include "finch/search/gene.hpp"

#include <cstddef>
#include <vector>

/// Genomes as points of the unit cube. All propagators except genetic and random search work on such points.
namespace finch::search {

/// A point of the unit cube: one coordinate per gene, as to_unit() returns it.
using UnitGenome = std::vector<double>;

[[nodiscard]] UnitGenome to_unit(const Space& space, const Genome& genome);
/// Returns the genome of a point that was made from `parent`. Genes that are active in the new genome, but were
/// inactive in the parent's genome, are drawn at random.
[[nodiscard]] Genome child_genome(const Space& space, const UnitGenome& point, const UnitGenome& parent,
                                  RandomStream& random);
/// Returns the genome of a point that has no parent.
[[nodiscard]] Genome from_unit(const Space& space, const UnitGenome& point);

/// Returns whether the gene is an unordered choice: the distance between two of its values has no meaning.
[[nodiscard]] bool is_choice(const Gene& gene);
/// Returns the genes that have more than one value.
[[nodiscard]] std::vector<std::size_t> free_genes(const Space& space);

[[nodiscard]] UnitGenome random_point(std::size_t genes, RandomStream& random);

/// Returns the squared distance of two points. Two different options of a choice have the distance 1.
[[nodiscard]] double squared_distance(const Space& space, const UnitGenome& a, const UnitGenome& b);

/// Returns `x` mirrored at the bounds until it is in [0, 1].
[[nodiscard]] double reflect(double x);

/// Mutates one coordinate like the breeder genetic algorithm (Mühlenbein and Schlierkamp-Voosen 1993). A real gene
/// moves by half the range · 2^(−precision·u) with a random u, or is drawn anew with probability `anew`. A discrete
/// gene moves by a few values. An unordered choice changes to any other option.
[[nodiscard]] double mutate_unit(const Gene& gene, double unit, double precision, double anew, RandomStream& random);

}  // namespace finch::search
