#pragma once

#include "finch/search/individual.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace finch::report {

/// The effect of one gene on the rank of the loss.
struct GeneEffect {
    std::size_t gene = 0;      ///< index in the space
    double share = 0;          ///< of the variance of the ranks that the gene's values explain, up to 1
    std::string best_fifth{};  ///< the gene's values in the best fifth: "0.01 to 0.03", "relu in 18 of 20"
    enum class Bound { none, low, high };
    Bound bound = Bound::none;  ///< half of the best fifth lies in the outer tenth of the range
};

/// The genes that matter beyond chance, the largest share first. `complete`: individuals with a loss, best first.
/// A gene's active values are cut into at most five groups of equal size (choices: one group per option). The share is
/// the explained variance of the ranks. A gene matters if its share exceeds the largest share of any gene in 95 % of
/// 200 runs with shuffled ranks (Westfall and Young, Resampling-based multiple testing, 1993). Empty for fewer than
/// fewest_for_effects individuals.
inline constexpr std::size_t fewest_for_effects = 25;
[[nodiscard]] std::vector<GeneEffect> gene_effects(const search::Space& space,
                                                   std::span<const search::Individual* const> complete);

}  // namespace finch::report
