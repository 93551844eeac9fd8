#pragma once

#include "finch/backend/device.hpp"

#include <algorithm>
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
    [[nodiscard]] LossSums sums() const override { return sums_; }
    void set_sums(const LossSums& sums) override { sums_ = sums; }

    void next_step() {
        steps_.at(begun_++).grad_scale *= scale_.scale;
        first_row_ = 0;
        rows_ = batch_;
    }
    void select(std::int64_t first, std::int64_t rows) override {
        first_row_ = static_cast<std::size_t>(first);
        rows_ = static_cast<std::size_t>(rows);
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
    /// Returns how many of the selected samples are not padding. The samples that are not padding come first.
    [[nodiscard]] std::int64_t samples() const {
        return std::clamp<std::int64_t>(samples_.at(begun_ - 1) - static_cast<std::int64_t>(first_row_), 0,
                                        static_cast<std::int64_t>(rows_));
    }
    /// Returns the index of the first selected sample in the global batch.
    [[nodiscard]] std::int64_t first_sample() const {
        return scalars().first_sample + static_cast<std::int64_t>(first_row_);
    }

private:
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
        return (pixel - images_.mean[channel]) / images_.deviation[channel];
    }
    template <class AddSample>
    void each_sample(std::int64_t columns, float* grad, AddSample add_sample);
    /// Returns the image indices of the selected samples; −1 is padding. Rows beyond the end of the batch are omitted.
    [[nodiscard]] std::span<const std::int64_t> selected_indices() const {
        return std::span(indices_).subspan((begun_ - 1) * batch_ + first_row_, std::min(rows_, batch_ - first_row_));
    }

    Images images_;
    std::size_t batch_;
    std::vector<std::int64_t> indices_;
    std::vector<StepScalars> steps_;
    std::vector<std::int64_t> samples_;      ///< per step
    std::size_t begun_ = 0;                  ///< steps that have begun since fill()
    std::size_t first_row_ = 0;              ///< first selected row of the current batch
    std::size_t rows_ = 0;                   ///< number of selected rows
    std::vector<std::uint8_t> ring_;         ///< memory of the loader
    std::optional<pixels::Loader> loader_;   ///< only for streamed images
    std::size_t loaded_ = 0;                 ///< steps since fill() for which the loader has delivered images
    std::span<const std::uint8_t> brought_;  ///< images of the last of these steps
    LossSums sums_;
    LossScale scale_;
};

[[nodiscard]] inline CpuStepContext& own(StepContext& step) {
    return dynamic_cast<CpuStepContext&>(step);
}

}  // namespace finch::backend::cpu
