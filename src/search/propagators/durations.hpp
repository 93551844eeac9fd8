#pragma once

#include "finch/search/individual.hpp"

namespace finch::search {

/// The durations of an island's evaluations.
class Durations {
public:
    void take(const Individual& one) {
        if (one.started > 0 && one.finished >= one.started) {
            seconds_ += one.finished - one.started;
            ++timed_;
        }
    }
    /// Returns whether `seconds` are at most a quarter of the mean duration of an evaluation, or no duration is known.
    [[nodiscard]] bool allow(double seconds) const noexcept {
        constexpr double most_share = 0.25;
        return timed_ == 0 || seconds < most_share * seconds_ / timed_;
    }

private:
    double timed_ = 0;
    double seconds_ = 0;  ///< sum over the timed evaluations
};

}  // namespace finch::search
