#pragma once

#include "finch/base/clock.hpp"
#include "finch/train/training.hpp"

#include <functional>
#include <optional>

namespace finch::train {

/// Seconds that the parts of a training take on a worker.
struct Timing {
    double start = 0;             ///< plans, memory, and what the first steps take longer
    double training_batch = 0;    ///< of all ranks
    double validation_batch = 0;  ///< of all ranks
};

/// How many batches of all ranks an epoch has.
struct EpochBatches {
    std::int64_t training = 0;
    std::int64_t validation = 0;
};
[[nodiscard]] EpochBatches epoch_batches(const Recipe& recipe, const data::Dataset& images, int ranks);

/// Seconds of a training that runs to its last epoch.
[[nodiscard]] double training_seconds(const Timing& timing, const EpochBatches& batches, std::int64_t epochs);

/// Collective over the worker. Trains what `recipe` says on a few batches of `images` (also of a stand-in, see
/// data/expected.hpp) again and again for about `seconds`, and takes the median epoch; the weights hardly move, so that
/// no loss can leave the finite. Nothing, on all ranks, where the network cannot exist or finds no memory.
[[nodiscard]] std::optional<Timing> measure_timing(backend::Device& device, const comm::Group& group,
                                                   comm::AllReduce& all_reduce, const data::Dataset& images,
                                                   const Recipe& recipe, double seconds,
                                                   const std::function<double()>& now = steady_seconds);

}  // namespace finch::train
