#include "finch/train/buckets.hpp"

#include <utility>

namespace finch::train {

BucketSchedule::BucketSchedule(const nn::ModelPlan& plan, BucketSizes sizes) {
    constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));
    const std::int64_t most = sizes.most_bytes / float_bytes;
    Bucket bucket;
    for (auto node = plan.nodes.rbegin(); node != plan.nodes.rend(); ++node) {
        bucket.end += node->parameters;
        const std::int64_t enough = buckets_.empty() ? sizes.first_bytes : sizes.later_bytes;
        for (; bucket.end - bucket.begin > most; bucket.begin += most) {
            buckets_.push_back({bucket.begin, bucket.begin + most});
        }
        if ((bucket.end - bucket.begin) * float_bytes >= enough) {
            buckets_.push_back(bucket);
            bucket.begin = bucket.end;
        }
    }
    if (bucket.begin < bucket.end) {
        buckets_.push_back(bucket);
    }
}

std::span<const Bucket> BucketSchedule::complete_until(std::int64_t end) noexcept {
    const std::size_t first = started_;
    while (started_ < buckets_.size() && buckets_[started_].end <= end) {
        ++started_;
    }
    return all().subspan(first, started_ - first);
}

std::span<const Bucket> BucketSchedule::rest() noexcept {
    return all().subspan(std::exchange(started_, 0));
}

}  // namespace finch::train
