#pragma once

#include "finch/nn/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace finch::train {

/// A part of the gradient arena that is all-reduced in one message, in floats.
struct Bucket {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool operator==(const Bucket&) const = default;
};

/// When a bucket is large enough to be sent.
///
/// DDP's first bucket is 1 MiB, which exceeds the whole gradient of the small networks that a search trains: everything
/// would go in one message after backward, beside nothing. At 128 KiB the linear layer's gradient (314 KB of the
/// tutorial's 332 KB, and the first to be ready) goes at once and travels beside the convolutions' backward, and the
/// small rest goes in one message, of which little more than the latency shows. Below that size a message costs more
/// latency than it hides. The later ones are DDP's 25 MiB, where bandwidth counts. No message is over 1 GiB: a larger
/// node is cut.
struct BucketSizes {
    std::int64_t first_bytes = std::int64_t{128} << 10;
    std::int64_t later_bytes = std::int64_t{25} << 20;
    std::int64_t most_bytes = std::int64_t{1} << 30;
};

/// The gradient arena cut into buckets of whole nodes, as far as these fit. A function of the plan alone, so that all
/// ranks cut alike, and can send a bucket whose computation failed.
class BucketSchedule {
public:
    explicit BucketSchedule(const nn::ModelPlan& plan, BucketSizes sizes = {});

    /// All of them, in the arena's order, without a gap.
    [[nodiscard]] std::span<const Bucket> all() const noexcept { return buckets_; }

    /// The arena is final up to `end`: the buckets that are complete now and were not before.
    std::span<const Bucket> complete_until(std::int64_t end) noexcept;
    /// The remaining buckets; then it begins anew for the next step.
    std::span<const Bucket> rest() noexcept;

private:
    std::vector<Bucket> buckets_;
    std::size_t started_ = 0;
};

}  // namespace finch::train
