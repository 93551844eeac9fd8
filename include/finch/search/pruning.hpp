#pragma once

#include "finch/search/population.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace finch::search {

/// Every training runs to its end.
struct NoPruning {};

/// Asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020) as
/// a rule that stops: at each rung a training continues if it is among the best 1 / factor of those that came there by
/// now.
struct HalvingOptions {
    std::int64_t first_epoch = 1;  ///< the first rung
    std::int64_t factor = 3;       ///< between two rungs
};

/// The median rule (Golovin et al., "Google Vizier", KDD 2017): at each rung a training ends if its best loss by then
/// is larger than the median of the others' best losses by the same epoch.
struct MedianOptions {
    std::int64_t first_epoch = 2;
    std::int64_t factor = 2;
    std::int64_t least = 5;  ///< others at the rung, before which none ends
};

/// A power law a + b·epoch^−c is fitted to the learning curve after each epoch: a training ends if the optimistic end
/// of what it says of the last epoch is larger than the median loss of complete trainings.
struct CurveOptions {
    std::int64_t first_epoch = 5;  ///< after which it is fitted, at least 4
    std::int64_t least = 5;        ///< complete trainings, before which none ends
};

using PruningOptions = std::variant<NoPruning, HalvingOptions, MedianOptions, CurveOptions>;

/// The epochs that are rungs: first_epoch, first_epoch · factor, …, most_rungs of them.
struct Rungs {
    std::int64_t first_epoch = 1;
    std::int64_t factor = 3;

    /// How many rungs are at `epoch` or before it.
    [[nodiscard]] std::int32_t passed(std::int64_t epoch) const noexcept;
    /// Whether `epoch` is a rung.
    [[nodiscard]] bool contains(std::int64_t epoch) const noexcept { return passed(epoch) > passed(epoch - 1); }
};

[[nodiscard]] inline bool prunes(const PruningOptions& options) noexcept {
    return !std::holds_alternative<NoPruning>(options);
}
/// Whether the rule compares with trainings that have not ended, so that they tell when they come to a rung.
[[nodiscard]] inline bool compares_at_rungs(const PruningOptions& options) noexcept {
    return std::holds_alternative<HalvingOptions>(options) || std::holds_alternative<MedianOptions>(options);
}

/// Whether the training of `individual`, which is to have `epochs` and whose objective was `values` after each so far,
/// ends now; a repeat never does. Compares with those born on the same island, as `population` knows them; a complete
/// training stands at every rung that it did not come to with its loss. Notes in `individual` which rung it came to and
/// what it was compared with. At a rung that it passed in an earlier start it is not compared again. Values that are
/// not finite are worse than all others (base/loss_order.hpp), so a training that has no other ends as a bad one does.
[[nodiscard]] bool ends_early(const PruningOptions& options, std::span<const double> values, std::int64_t epochs,
                              const Population& population, Individual& individual);

/// The loss that is just good enough at a rung: `losses` of all that came there, at least one.
[[nodiscard]] double halving_threshold(std::vector<double> losses, std::int64_t factor);
/// The median, the mean of the middle two. Of at least one.
[[nodiscard]] double median_of(std::vector<double> losses);
/// The lower end of a one-sided 90 % prediction interval for the value after `epoch`, of a power law a + b·epoch^−c,
/// fitted by least squares to `values` after epochs 1, 2, …, over all c that a likelihood ratio does not refuse at
/// 90 %; never above the least value so far. Values that are not finite are left out: nothing for fewer than 4 others
/// or if the squares of the others are too large for a number, infinity if there are no others among 4 or more.
[[nodiscard]] std::optional<double> optimistic_end(std::span<const double> values, std::int64_t epoch);

}  // namespace finch::search
