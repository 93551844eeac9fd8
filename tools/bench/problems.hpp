#pragma once

#include "finch/search/gene.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Test problems on which the benchmarks compare searches.
namespace finch::bench {

/// A problem to minimise. Its minimum is 0.
struct Problem {
    search::Space space;
    /// Measures a genome with noise. Returns a curve of `epochs` losses. The search gets the smallest loss as the value
    /// of the genome.
    std::function<std::vector<double>(const search::Genome&, RandomStream& noise)> measured;
    /// Returns the value of a genome without noise. The benchmarks judge results by this value.
    std::function<double(const search::Genome&)> truth;
    std::int64_t epochs = 1;
};

/// Returns the problem `name`:
///   mixed: 14 genes of all kinds; six genes are conditional;
///   table: 12 choices of 4 options. The value is a sum of random terms, each of three neighbouring choices (an NK
///     landscape, Kauffman 1993). Measurements have normal noise of half the standard deviation of the sums;
///   funnels, funnels:ripples: two funnels of 30 genes. The wide funnel has the minimum 30;
///   trainings:FOLDER: a space of choices. The runs in FOLDER recorded trainings of every genome (trainings.py). A
///     measurement is one recorded training of the genome. The true value is the mean of the recorded trainings;
///   NAME[:DIMENSIONS][:shifted|:rotated]: a benchmark function; `rotated` also shifts. NAME is a function of Finch, or
///     ellipsoid, ellipsoid_1e2, ellipsoid_1e4 (condition number 1e6, 1e2 or 1e4), ackley, bisphere, weighted_sum
///     (Σ w |x|, w from 1 to 100, [-5, 5]), levy ([-10, 10]), styblinski_tang ([-5, 5]), hartmann (6 genes in [0, 1])
///     or griewank_100 (in [-100, 100]).
/// `seed` determines the table, the centers, the shift and the rotation. Throws ConfigError.
[[nodiscard]] Problem find_problem(const std::string& name, std::uint64_t seed);

/// Returns the genes as JSON, a list of objects, for searches that are written in other languages.
[[nodiscard]] std::string space_json(const search::Space& space);

}  // namespace finch::bench
