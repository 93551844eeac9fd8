#pragma once

#include "finch/comm/all_reduce.hpp"
#include "finch/nn/model.hpp"
#include "finch/train/buckets.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

namespace finch::train {

/// The sums over the worker's ranks of one training step: statistics within forward and backward, and the gradients'
/// buckets. Every rank does all of them in the same order, also if its computation failed: finish() then does those
/// that are left, with zeros.
class StepSums : public backend::GroupSum {
public:
    /// All must outlive it; `timer` may be null. A step goes forward and backward `passes` times; the gradients of the
    /// last one are summed.
    StepSums(backend::Device& device, comm::AllReduce& all_reduce, nn::Model& model, std::int64_t passes,
             backend::LapTimer* timer);

    void begin() noexcept;
    /// Statistics.
    void sum(double* values, std::size_t count) override;
    /// The gradients are final up to `end`: starts the buckets that are complete now, and lets those under way move on.
    void grads_ready(std::int64_t end);
    /// Waits for the buckets; where the step `failed`, after it has done with zeros what is left. Throws what sum()
    /// threw: no peer is there to wait for; and Error if a step did not fail but left sums out.
    void finish(bool failed);

private:
    /// A sum of the step: statistics, or else a bucket.
    struct Planned {
        std::size_t statistics = 0;  ///< doubles
        Bucket bucket{};
    };

    void start(const Bucket& bucket);

    backend::Device& device_;
    comm::AllReduce& all_reduce_;
    nn::Model& model_;
    backend::LapTimer* timer_;  ///< null: not measured
    BucketSchedule buckets_;
    std::vector<Planned> planned_;  ///< in the order of a step
    std::size_t done_ = 0;          ///< of them, in this step
    std::exception_ptr failure_;    ///< of a sum
    backend::Buffer zeros_;         ///< for the statistics of a failed step
};

}  // namespace finch::train
