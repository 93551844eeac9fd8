#pragma once

#include "finch/nn/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace finch::train {

/// A part of the gradient arena that is summed by one all-reduce: the floats [begin, end).
struct Bucket {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool operator==(const Bucket&) const = default;
};

/// The sizes at which a bucket is complete, so that its all-reduce can start.
///
/// The first bucket of PyTorch's DDP has 1 MiB, which exceeds the whole gradient of the small networks that a search
/// trains. With a bucket of 1 MiB, the only all-reduce would start after backward and overlap with nothing. With 128
/// KiB, the linear layer's gradient (314 KB of 332 KB in the tutorial's network, and the first to be ready) is
/// all-reduced during the convolutions' backward. The small rest of the gradient is a second message, which costs
/// little more than its latency. A smaller first bucket would add more latency than it hides. The later buckets have 25
/// MiB, as in DDP, because bandwidth dominates for large gradients. No message exceeds 1 GiB: a larger node is split.
struct BucketSizes {
    std::int64_t first_bytes = std::int64_t{128} << 10;
    std::int64_t later_bytes = std::int64_t{25} << 20;
    std::int64_t most_bytes = std::int64_t{1} << 30;
};

/// The division of the gradient arena into buckets. A bucket consists of whole nodes of the model; only a node above
/// the size limit is split. The division depends on the plan alone, so it is the same on all ranks, and a rank can
/// all-reduce a bucket even if its computation failed.
class BucketSchedule {
public:
    explicit BucketSchedule(const nn::ModelPlan& plan, BucketSizes sizes = {});

    /// All buckets, in the order of the arena, without gaps.
    [[nodiscard]] std::span<const Bucket> all() const noexcept { return buckets_; }

    /// Returns the buckets that became complete since the last call, given that the gradients before `end` are final.
    std::span<const Bucket> complete_until(std::int64_t end) noexcept;
    /// Returns the buckets that complete_until() has not returned in this step, and resets the schedule for the next
    /// step.
    std::span<const Bucket> rest() noexcept;

private:
    std::vector<Bucket> buckets_;
    std::size_t started_ = 0;
};

}  // namespace finch::train
