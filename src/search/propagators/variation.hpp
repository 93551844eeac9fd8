#pragma once

#include "finch/search/gene.hpp"

/// Operators on one coordinate in [0, 1]. None puts more at a bound than its distribution has there: what lies beyond
/// is cut off, not moved.
namespace finch::search {

/// A normal about `centre` in [0, 1].
[[nodiscard]] double normal_in_unit(double centre, double deviation, RandomStream& random);

/// The child near `near` that simulated binary crossover (Deb and Agrawal 1995) makes of two parents: their distance
/// times a spread β, whose density falls as β^η below 1 and as β^−(η+2) above.
[[nodiscard]] double simulated_binary(double near, double far, double eta, RandomStream& random);

/// Uniform from `alpha` of the parents' distance below the lower to as much above the upper one (BLX-α, Eshelman and
/// Schaffer 1993).
[[nodiscard]] double blend(double first, double second, double alpha, RandomStream& random);

/// Polynomial mutation (Deb and Goyal 1996): a change δ whose density falls as (1 − |δ|)^η.
[[nodiscard]] double polynomial(double centre, double eta, RandomStream& random);

/// The value of `gene` at `u`; where that is `value` still and values are apart, its neighbour on the side of `u`, or
/// at a bound the other one.
[[nodiscard]] double changed_value(const Gene& gene, double value, double u);

/// Another option than `value` of a choice that has several, each as often.
[[nodiscard]] double other_option(const Gene& gene, double value, RandomStream& random);

}  // namespace finch::search
