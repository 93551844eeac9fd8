#pragma once

#include "finch/comm/group.hpp"
#include "finch/train/training.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace finch::train {

/// What a model says of each sample. A sample is measured by one rank and is 0 on the others, so sums over ranks
/// gather.
class PredictionTable {
public:
    /// `labelled`: outputs are logits of classes; otherwise they are what is predicted of targets.
    PredictionTable(std::int64_t samples, std::int64_t outputs, bool labelled);

    /// Local. Of a sample with such outputs, whose class is `label`, if it has one.
    void add(std::size_t sample, std::span<const float> outputs, std::int32_t label);
    /// Collective over the worker.
    void gather(const comm::Group& group);
    void move_to(Measured& measured) &&;

private:
    std::size_t outputs_;
    bool labelled_;
    std::vector<std::int64_t> predictions_;
    std::vector<std::int64_t> places_;
    std::vector<float> scores_;  ///< empty if they are too many
};

}  // namespace finch::train
