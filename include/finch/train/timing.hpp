#pragma once

#include "finch/base/clock.hpp"
#include "finch/train/training.hpp"

#include <functional>
#include <optional>

namespace finch::train {

/// The seconds that a worker needs for the parts of a training.
struct Timing {
    double start = 0;             ///< planning, allocation, and the extra time of the first steps
    double training_batch = 0;    ///< one batch of all ranks together
    double validation_batch = 0;  ///< one batch of all ranks together
};

/// The number of batches in an epoch, each computed by all ranks of a worker together.
struct EpochBatches {
    std::int64_t training = 0;
    std::int64_t validation = 0;
};
[[nodiscard]] EpochBatches epoch_batches(const Recipe& recipe, const data::Dataset& images, int ranks);

/// Returns the seconds of a training that is not stopped before its last epoch.
[[nodiscard]] double training_seconds(const Timing& timing, const EpochBatches& batches, std::int64_t epochs);

/// Collective over the worker. Trains by `recipe` on a few batches of `images` repeatedly for about `seconds` and
/// returns the times of the median epoch. The learning rate is almost
/// 0, so the loss stays finite. Returns nothing, on all ranks, if the network cannot exist or does not fit into memory,
/// or if the training diverges.
[[nodiscard]] std::optional<Timing> measure_timing(backend::Device& device, const comm::Group& group,
                                                   comm::AllReduce& all_reduce, const data::Dataset& images,
                                                   const Recipe& recipe, double seconds,
                                                   const std::function<double()>& now = steady_seconds);

}  // namespace finch::train
