#pragma once

#include "finch/base/named_array.hpp"

#include "statistics.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace finch::report {

/// The mean loss of a network on the samples of one set, with the interval that so many samples allow.
struct SampleLosses {
    std::int64_t samples = 0;
    double loss = 0;                     ///< the error in [0, 1] if `errors` is known
    std::optional<std::int64_t> errors;  ///< wrong classes
    std::optional<Interval> interval;    ///< of 95 %: Wilson's for errors, else the bootstrap's
};

/// The result below `set` ("test", "validation") in the arrays of a model file: its error, if the file has an accuracy
/// and `wants_rate` or the set is the test set, else its loss. Nothing without results. No interval if the recorded
/// loss is not the mean over samples that the scores give, as with class weights.
[[nodiscard]] std::optional<SampleLosses> sample_losses(const NamedArrays& arrays, const std::string& set,
                                                        bool wants_rate);

}  // namespace finch::report
