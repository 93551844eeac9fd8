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
class Findings {
public:
    Findings(std::int64_t samples, std::int64_t classes);

    /// Local. Of a sample with such logits, whose class is `label`.
    void add(std::size_t sample, std::span<const float> logits, std::int32_t label);
    /// Collective over the worker.
    void gather(const comm::Group& group);
    void move_to(Measured& measured) &&;

private:
    std::size_t classes_;
    std::vector<std::int64_t> predictions_;
    std::vector<std::int64_t> places_;
    std::vector<float> scores_;  ///< empty where they are too many
};

}  // namespace finch::train
