#pragma once

#include "finch/backend/device.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace finch::backend::cpu {

/// A StepContext that reads images directly from host memory, or from the buffers of a loader.
class CpuStepContext : public StepContext {
public:
    /// Throws std::bad_alloc.
    CpuStepContext(Images images, std::int64_t batch);

    [[nodiscard]] std::int64_t capacity() const override { return 1024; }
    void fill(std::span<const std::int64_t> indices, std::span<const StepScalars> steps) override;
    void announce(std::span<const std::int64_t> indices) override;
    [[nodiscard]] std::unique_ptr<StepContext> block(std::int64_t first, std::int64_t rows) override;
    [[nodiscard]] LossSums sums() const override { return sums_; }
    void set_sums(const LossSums& sums) override { sums_ = sums; }
    [[nodiscard]] std::vector<std::int32_t> predictions() const override { return predictions_; }

    void next_step() {
        steps_.at(begun_++).grad_scale *= scale_.scale;
        predicted_ = predictions_.data() + (begun_ - 1) * batch_;
    }
    [[nodiscard]] LossScale loss_scale() const override { return scale_; }
    void set_loss_scale(const LossScale& scale) override { scale_ = scale; }
    /// True if the current step is skipped. A skipped step changes nothing.
    [[nodiscard]] bool skips() const { return scale_.skips != 0; }
    /// Calls LossScale::decide() for the current step. The step's gradients must already be unscaled.
    void decide(bool all_finite) {
        StepScalars& present = steps_.at(begun_ - 1);
        scale_.decide(all_finite, present.optimizer, present.average_share);
    }
    /// Throws StorageError if streamed images cannot be read.
    void load_batch(float* out);
    void softmax_cross_entropy(const float* logits, std::int64_t classes, float* grad);
    void regression_loss(Regression kind, const float* predictions, std::int64_t outputs, float* grad);
    /// Returns the scalars of the current step.
    [[nodiscard]] const StepScalars& scalars() const { return steps_.at(begun_ - 1); }
    /// Returns how many samples of the current step's batch are not padding. The samples that are not padding come
    /// first in the batch.
    [[nodiscard]] std::int64_t samples() const { return samples_.at(begun_ - 1); }

private:
    /// Makes a context without a loader.
    CpuStepContext(std::shared_ptr<const Images> images, std::int64_t batch);
    void take_images();
    template <class Pixel>
    void load_pixels(float* out) const;
    [[nodiscard]] const std::uint8_t* image_bytes(std::size_t row, std::int64_t index) const;
    template <class Pixel>
    void load_distorted(const Pixel* image, std::int64_t place, float* out) const;
    [[nodiscard]] static float value_of(std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0F; }
    [[nodiscard]] static float value_of(float pixel) { return pixel; }
    [[nodiscard]] float normalised(std::uint8_t pixel, std::size_t channel) const {
        return normalised(value_of(pixel), channel);
    }
    [[nodiscard]] float normalised(float pixel, std::size_t channel) const {
        return (pixel - images_->mean[channel]) / images_->deviation[channel];
    }
    template <class AddSample>
    void each_sample(std::int64_t columns, float* grad, AddSample add_sample);
    /// Returns the image indices of the current step; −1 is padding.
    [[nodiscard]] std::span<const std::int64_t> batch_indices() const {
        return std::span(indices_).subspan((begun_ - 1) * batch_, batch_);
    }

    std::shared_ptr<const Images> images_;  ///< shared with the blocks
    std::size_t batch_;
    std::vector<std::int64_t> indices_;
    std::vector<StepScalars> steps_;
    std::vector<std::int64_t> samples_;      ///< per step
    std::size_t begun_ = 0;                  ///< steps that have begun since fill()
    std::vector<std::uint8_t> ring_;         ///< memory of the loader
    std::optional<pixels::Loader> loader_;   ///< only for streamed images
    std::size_t loaded_ = 0;                 ///< steps since fill() for which the loader has delivered images
    std::span<const std::uint8_t> brought_;  ///< images of the last of these steps
    LossSums sums_;
    std::vector<std::int32_t> predictions_;  ///< empty in a block
    std::int32_t* predicted_ = nullptr;      ///< predictions of the current step; of a block: in its parent
    LossScale scale_;
};

[[nodiscard]] inline CpuStepContext& own(StepContext& step) {
    return dynamic_cast<CpuStepContext&>(step);
}

}  // namespace finch::backend::cpu
