#pragma once

#include "unit_genome.hpp"

#include <Eigen/Dense>
#include <cstddef>
#include <vector>

/// How genes stand on CMA-ES's coordinates, which have no bounds.
namespace finch::search {

inline constexpr double bend = 0.05;

/// Of a real gene: the point of [0, 1] that coordinate `x` means. As it is between `bend` and 1 − `bend`; near the
/// bounds bent, so that it comes to them at −`bend` and 1 + `bend` with slope 0 and goes back beyond (the boundary
/// transformation of Hansen's package cma): an optimum at a bound is like any other, and no samples lie on it.
[[nodiscard]] double bounded(double x);
/// The coordinate in [−bend, 1 + bend] that means `u` in [0, 1].
[[nodiscard]] double unbounded(double u);

/// For each coordinate where its gene's value changes, in increasing order within (0, 1); empty: the gene is real.
using Thresholds = std::vector<std::vector<double>>;

/// Of the genes `which` of a space.
[[nodiscard]] Thresholds thresholds_of(const Space& space, const std::vector<std::size_t>& which);

/// The coordinates that mean one value: [low, high], which at the first and the last value have no end.
struct Cell {
    double low = 0;
    double high = 0;
};
/// Of the value at `u`; all there is where `u` is NaN, which stands for "not known".
[[nodiscard]] Cell cell_at(const std::vector<double>& thresholds, double u);

/// The margin correction of Hamano, Saito, Nomura and Shirakawa ("CMA-ES with Margin", GECCO 2022, section 4): moves
/// `mean` and stretches `extent`, so that a normal sample of deviation `extent`·`deviation` leaves the mean's value
/// with a probability of `alpha` at least, upwards and downwards half of it each, or all of it where there is but one
/// way.
void keep_margin(const std::vector<double>& thresholds, double deviation, double alpha, double& mean, double& extent);

}  // namespace finch::search
