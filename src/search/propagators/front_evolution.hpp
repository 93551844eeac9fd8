#pragma once

#include "finch/search/propagator.hpp"

namespace finch::search {

/// Breeds for several objectives, without generations. The parents are the first individuals of the island by fronts
/// and crowding distance, as in NSGA-II (Deb, Pratap, Agarwal and Meyarivan 2002), whose operators breed three quarters
/// of the children: simulated binary crossover and polynomial mutation. The others are mutants of differential
/// evolution (evolution.hpp).
[[nodiscard]] Offspring bred_from_front(const Population& population, int island, const Space& space,
                                        RandomStream& random);

}  // namespace finch::search
