#pragma once

#include "finch/base/clock.hpp"
#include "finch/train/training.hpp"

#include <functional>
#include <optional>

namespace finch::train {

/// Collective over the worker. Trains by `recipe` on a few batches of `images` repeatedly, for about `seconds`. Returns
/// the seconds of the whole training, if it is not stopped before its last epoch. The learning rate is almost 0, so the
/// loss stays finite. Returns nothing, on all ranks, if the network cannot exist or does not fit into memory, or if the
/// training diverges.
[[nodiscard]] std::optional<double> measure_training(backend::Device& device, const comm::Group& group,
                                                     comm::AllReduce& all_reduce, const data::Dataset& images,
                                                     const Recipe& recipe, double seconds,
                                                     const std::function<double()>& now = steady_seconds);

}  // namespace finch::train
