#pragma once

#include "unit_genome.hpp"

#include <Eigen/Dense>
#include <cstddef>
#include <vector>

/// The mapping between genes and the coordinates of CMA-ES, which have no bounds.
namespace finch::search {

inline constexpr double bend = 0.05;

/// Maps the coordinate `x` of a real gene to a point of [0, 1]. Between `bend` and 1 − `bend`, the point is equal to
/// `x`. Near the bounds of [0, 1], the mapping is bent. The point reaches the bounds at `x` = −`bend` and `x` = 1 +
/// `bend` with slope 0, and turns back beyond (the boundary transformation of Hansen's package cma). An optimum at a
/// bound is therefore treated like any other optimum, and no sample is exactly at a bound.
[[nodiscard]] double bounded(double x);
/// Returns the coordinate in [−bend, 1 + bend] that bounded() maps to `u` in [0, 1].
[[nodiscard]] double unbounded(double u);

/// One list per coordinate: the points within (0, 1) at which the value of its gene changes, in increasing order. The
/// list of a real gene is empty.
using Thresholds = std::vector<std::vector<double>>;

/// Returns the thresholds of the genes with the indices `which`.
[[nodiscard]] Thresholds thresholds_of(const Space& space, const std::vector<std::size_t>& which);

/// The interval [low, high] of coordinates that map to the same value of a gene. The interval is unbounded below for
/// the first value of a gene, and unbounded above for the last value.
struct Cell {
    double low = 0;
    double high = 0;
};
/// Returns the cell of the gene's value at `u`. If `u` is NaN ("not known"), the cell contains all coordinates.
[[nodiscard]] Cell cell_at(const std::vector<double>& thresholds, double u);

/// The margin correction of Hamano, Saito, Nomura and Shirakawa ("CMA-ES with Margin", GECCO 2022, section 4). The
/// correction moves `mean` and stretches `extent` of one discrete coordinate. As a result, a normal sample with the
/// deviation `extent`·`deviation` gives another gene value than `mean` with a probability of at least `alpha`. Half of
/// this probability is for larger values and half for smaller values; at the first or last value, all of it is for one
/// side.
void keep_margin(const std::vector<double>& thresholds, double deviation, double alpha, double& mean, double& extent);

}  // namespace finch::search
