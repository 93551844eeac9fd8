#pragma once

#include "finch/search/gene.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// What searches are compared on.
namespace finch::bench {

/// To be minimised, with a least value of 0.
struct Problem {
    search::Space space;
    /// What a search is told of a genome, as a curve of `epochs` losses, of which the least is its value.
    std::function<std::vector<double>(const search::Genome&, RandomStream& noise)> measured;
    /// The same without noise: what a result is judged by.
    std::function<double(const search::Genome&)> truth;
    std::int64_t epochs = 1;
};

/// `mixed`: 14 genes of all kinds, six of them conditional. `table`: 12 choices of 4 options, whose sums of random
/// triples (an NK landscape, Kauffman 1993) are measured with normal noise of half their deviation. `funnels`,
/// `funnels:ripples`: two funnels of 30 genes, the wider of which ends at 30. `trainings:FOLDER`: a space of choices,
/// all of whose trainings the runs in FOLDER recorded (trainings.py): one that was recorded is measured, their mean is
/// true. Else a benchmark function, NAME[:DIMENSIONS][:shifted|:rotated], the latter shifted, too: of the product, or
///   ellipsoid_1e2, ellipsoid_1e4: axes of a condition of 1e2 or 1e4;
///   weighted_sum: Σ w |x|, w from 1 to 100, [-5, 5];
///   levy, [-10, 10]; styblinski_tang, [-5, 5]; hartmann, 6 genes in [0, 1];
///   griewank_100: griewank in [-100, 100].
/// `seed` draws the table, the place and the rotation. Throws ConfigError.
[[nodiscard]] Problem find_problem(const std::string& name, std::uint64_t seed);

/// The genes as JSON, a list of objects, for searches that are written in other languages.
[[nodiscard]] std::string space_json(const search::Space& space);

}  // namespace finch::bench
