#pragma once

#include "finch/comm/all_reduce.hpp"
#include "finch/nn/model.hpp"
#include "finch/train/buckets.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

namespace finch::train {

/// The all-reduces of one training step over the worker's ranks: statistics within forward and backward, and the
/// buckets of gradients. Every rank executes all of these all-reduces in the same order. If the computation of a rank
/// failed, finish() executes the remaining all-reduces with zeros.
class StepSums : public backend::GroupSum {
public:
    /// All arguments must outlive this object. The argument `timer` may be null. A step has `passes` forward and
    /// backward passes; only the gradients of the last pass are all-reduced.
    StepSums(backend::Device& device, comm::AllReduce& all_reduce, nn::Model& model, std::int64_t passes,
             backend::LapTimer* timer);

    void begin() noexcept;
    /// All-reduces statistics.
    void sum(double* values, std::size_t count) override;
    /// Call grads_ready() when the gradients before `end` are final. Starts the all-reduces of complete buckets and
    /// progresses the running ones.
    void grads_ready(std::int64_t end);
    /// Waits for the buckets. If the step `failed`, first executes the remaining all-reduces with zeros. If sum()
    /// threw, rethrows its exception and does not wait, since the peers cannot be reached. Throws Error if a step did
    /// not fail but omitted all-reduces.
    void finish(bool failed);

private:
    /// One all-reduce of the step: of statistics, or of a bucket.
    struct Planned {
        std::size_t statistics = 0;  ///< number of doubles; 0: a bucket
        Bucket bucket{};
    };

    void start(const Bucket& bucket);

    backend::Device& device_;
    comm::AllReduce& all_reduce_;
    nn::Model& model_;
    backend::LapTimer* timer_;  ///< null: no profiling
    BucketSchedule buckets_;
    std::vector<Planned> planned_;  ///< all-reduces in the order of a step
    std::size_t done_ = 0;          ///< number of all-reduces executed in this step
    std::exception_ptr failure_;    ///< exception of sum()
    backend::Buffer zeros_;         ///< for the statistics of a failed step
};

}  // namespace finch::train
