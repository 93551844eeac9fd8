#pragma once

#include "finch/backend/device.hpp"

#include <cstddef>
#include <vector>

namespace finch::backend::cpu {

/// Reads images where they lie in host memory, one step after another.
class CpuFeed : public Feed {
public:
    CpuFeed(Images images, std::int64_t batch) : images_(std::move(images)), batch_(static_cast<std::size_t>(batch)) {}

    [[nodiscard]] std::int64_t capacity() const override { return 1024; }
    void fill(std::span<const std::int64_t> indices, std::span<const StepNumbers> steps) override;
    [[nodiscard]] LossSums sums() const override { return sums_; }
    void set_sums(const LossSums& sums) override { sums_ = sums; }

    void gather(float* out) const;
    void softmax_cross_entropy(const float* logits, std::int64_t classes, float* grad);
    /// The numbers of the step whose loss was last.
    [[nodiscard]] const StepNumbers& ended_step() const { return steps_.at(next_ - 1); }

private:
    /// The images of the present step; −1 is padding.
    [[nodiscard]] std::span<const std::int64_t> batch_indices() const {
        return std::span(indices_).subspan(next_ * batch_, batch_);
    }

    Images images_;
    std::size_t batch_;
    std::vector<std::int64_t> indices_;
    std::vector<StepNumbers> steps_;
    std::size_t next_ = 0;  ///< the present step
    LossSums sums_;
};

}  // namespace finch::backend::cpu
