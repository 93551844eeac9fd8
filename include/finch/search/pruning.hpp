#pragma once

#include "finch/search/population.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace finch::search {

/// No pruning: every training runs to its end.
struct NoPruning {};

/// Asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020) as
/// a stopping rule. At each rung, a training continues if it is among the best 1 / factor of the trainings that have
/// reached this rung so far.
struct HalvingOptions {
    std::int64_t first_epoch = 1;  ///< the first rung
    std::int64_t factor = 3;       ///< ratio of two consecutive rungs
};

/// The median stopping rule (Golovin et al., "Google Vizier", KDD 2017). At each rung, a training ends if its best loss
/// so far is larger than the median of the other trainings' best losses up to the same epoch.
struct MedianOptions {
    std::int64_t first_epoch = 2;
    std::int64_t factor = 2;
    std::int64_t least = 5;  ///< a training can only end if this many others have reached the rung
};

/// A stopping rule by extrapolation: after each epoch, a power law a + b·epoch^−c is fitted to the learning curve of a
/// training. The training ends if the optimistic bound of its predicted last loss is larger than the median loss of
/// complete trainings.
struct CurveOptions {
    std::int64_t first_epoch = 5;  ///< first epoch after which the power law is fitted, at least 4
    std::int64_t least = 5;        ///< a training can only end if this many are complete
};

using PruningOptions = std::variant<NoPruning, HalvingOptions, MedianOptions, CurveOptions>;

/// The epochs that are rungs: first_epoch, first_epoch · factor, …; most_rungs in total.
struct Rungs {
    std::int64_t first_epoch = 1;
    std::int64_t factor = 3;

    /// Returns the number of rungs up to and including `epoch`.
    [[nodiscard]] std::int32_t passed(std::int64_t epoch) const noexcept;
    /// Returns the epoch of the rung with the number `rung`, from 1.
    [[nodiscard]] std::int64_t epoch_of(std::int32_t rung) const noexcept;
    /// Returns whether `epoch` is a rung.
    [[nodiscard]] bool contains(std::int64_t epoch) const noexcept { return passed(epoch) > passed(epoch - 1); }
};

[[nodiscard]] inline bool prunes(const PruningOptions& options) noexcept {
    return !std::holds_alternative<NoPruning>(options);
}
/// Returns whether the pruning rule compares trainings before they have ended. Each training must then report the rungs
/// that it reaches.
[[nodiscard]] inline bool compares_at_rungs(const PruningOptions& options) noexcept {
    return std::holds_alternative<HalvingOptions>(options) || std::holds_alternative<MedianOptions>(options);
}

/// Returns the rungs of a pruning that compares trainings at rungs; else nothing.
[[nodiscard]] std::optional<Rungs> rungs_of(const PruningOptions& options);

/// Returns whether the training of `individual` must end now; always false for a repeat. `epochs`: the planned number
/// of epochs. `values`: the objective after each epoch so far. The training is compared with the individuals that were
/// born on the same island, as far as `population` knows them. If a complete training has no loss at a rung, its final
/// loss is used in the comparison, except at rungs that an heir has inherited. The rung that the training reached and
/// the threshold of the comparison are stored in `individual`. A rung that was passed in an earlier start is not
/// compared again; a rung that was passed without a comparison, because a stop or a kill came first, is compared late,
/// with the values up to its epoch. Values that are not finite are worse than all others (base/loss_order.hpp), so a
/// training with no finite value ends like a bad one. If the population has costs, `individual` must have its costs so
/// far: a training then continues at a rung if it is in the first front, or among the best by is_among_best()
/// (HalvingOptions: 1 / factor, MedianOptions: half).
[[nodiscard]] bool ends_early(const PruningOptions& options, std::span<const double> values, std::int64_t epochs,
                              const Population& population, Individual& individual);

/// Returns the largest loss with which a training continues at a rung. `losses`: the losses of all trainings that
/// reached the rung, at least one.
[[nodiscard]] double halving_threshold(std::vector<double> losses, std::int64_t factor);
/// Returns the median of `losses`, which must not be empty. For an even number, it is the mean of the middle two
/// losses.
[[nodiscard]] double median_of(std::vector<double> losses);
/// Returns an optimistic prediction of the value after `epoch`: the lower end of a one-sided 90 % prediction interval,
/// but never more than the least value so far. The prediction is made by a power law a + b·epoch^−c, fitted by least
/// squares to `values` after epochs 1, 2, …. The result is the smallest prediction for any exponent c that a likelihood
/// ratio test does not reject at 90 %. Values that are not finite are left out. Returns nothing for fewer than 4 finite
/// values, or if the squares of the values overflow. Returns infinity if there are 4 or more values and none is finite.
[[nodiscard]] std::optional<double> optimistic_end(std::span<const double> values, std::int64_t epoch);

}  // namespace finch::search
