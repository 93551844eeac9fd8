#pragma once

#include "finch/backend/distortion.hpp"
#include "finch/backend/loss_scale.hpp"
#include "finch/backend/optimizer.hpp"
#include "finch/pixels/loader.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace finch::backend {

/// Sums over samples. The losses are summed in double; the numbers of samples are exact.
struct LossSums {
    double loss = 0;
    std::int64_t correct = 0;  ///< correctly classified samples, if there are labels
    std::int64_t samples = 0;
    LossSums& operator+=(const LossSums& other) noexcept {
        loss += other.loss;
        correct += other.correct;
        samples += other.samples;
        return *this;
    }
};

/// A data set and its normalisation. The pixels are in host memory or in files. The spans must remain valid while a
/// StepContext uses them.
struct Images {
    std::span<const std::uint8_t> pixels;  ///< (samples, H, W, C), as bytes
    std::span<const std::int32_t> labels;  ///< one per sample; otherwise `targets`
    std::span<const float> targets = {};   ///< (samples, target_size)
    std::int64_t pixels_per_image = 0;     ///< H·W·C
    std::int64_t target_size = 0;
    bool float_pixels = false;         ///< a pixel is a float, otherwise a byte
    std::vector<float> mean = {0.0F};  ///< per channel: (pixel − mean) / deviation; a byte is first divided by 255
    std::vector<float> deviation = {1.0F};
    std::vector<float> class_weights = {};  ///< (classes), for losses by label; empty: all 1
    [[nodiscard]] std::size_t bytes_per_image() const {
        return static_cast<std::size_t>(pixels_per_image) * (float_pixels ? sizeof(float) : 1);
    }
    /// Returns the labels or targets as bytes; bytes_per_answer() is the size of one sample's label or target.
    [[nodiscard]] std::span<const std::byte> answers() const {
        return targets.empty() ? std::as_bytes(labels) : std::as_bytes(targets);
    }
    [[nodiscard]] std::size_t bytes_per_answer() const {
        return targets.empty() ? sizeof(std::int32_t) : static_cast<std::size_t>(target_size) * sizeof(float);
    }

    /// The files that the pixels are streamed from; null if all pixels are in `pixels`.
    std::shared_ptr<finch::pixels::Store> store = {};
    finch::pixels::Prefetch prefetch = {};

    /// The distortions are applied in every step. A pixel whose source is outside the image is black. A pixel that is
    /// cut out is 0 after normalisation.
    Distortions distortions = {};
};

/// The scalars that differ from step to step.
struct StepScalars {
    float grad_scale = 0;  ///< of the loss's gradient: 1 / samples of the global batch, or 1 / sum of their weights
    float label_smoothing = 0;
    OptimizerScalars optimizer{};
    float average_share = 0;                    ///< weight of the step's parameters in the average; 1 in the first step
    std::array<std::uint32_t, 2> random_key{};  ///< for dropout and distortions of the step; the same on all ranks
    std::int64_t first_sample = 0;              ///< index of this rank's first sample in the global batch
};

/// The data that differ from step to step: images, labels, scalars, and the sums of the losses. The host fills the
/// context for many steps at a time. Device::next_step(), load_batch() and the loss advance the device from one of
/// these steps to the next without a message from the host. A Device makes the context for one data set and one batch
/// size; only this Device can use the context.
class StepContext {
public:
    virtual ~StepContext() = default;

    /// Returns the maximum number of steps that fill() accepts; at least 1.
    [[nodiscard]] virtual std::int64_t capacity() const = 0;
    /// Sets the next steps. `indices` (steps, batch) holds the indices of each step's images. An index of −1 stands for
    /// padding: an image of zeros with weight 0. Padding is allowed only at the end of a batch. Call fill() only after
    /// the previous steps are done and Device::synchronize() has returned. If streamed images cannot be read, fill() or
    /// a later Device::load_batch() throws StorageError. After a StorageError the context can be filled again.
    virtual void fill(std::span<const std::int64_t> indices, std::span<const StepScalars> steps) = 0;
    /// Announces the images of steps that will probably follow, so that streamed images are read in the background.
    virtual void announce(std::span<const std::int64_t> /*indices*/) {}
    /// Returns a context whose current step is that of this context, but whose batch is the rows [`first`, `first` +
    /// `rows`) of the current batch, with sums of its own. Rows beyond the end of the batch are padding. The block is
    /// valid until the next step of this context. Throws StorageError if streamed images cannot be read, and Error if
    /// the device computes every batch as one block.
    [[nodiscard]] virtual std::unique_ptr<StepContext> block(std::int64_t first, std::int64_t rows);
    /// Returns the sums of the losses since construction or since the last set_sums(). Valid only after
    /// Device::synchronize().
    [[nodiscard]] virtual LossSums sums() const = 0;
    virtual void set_sums(const LossSums& sums) = 0;
    /// Returns the class with the largest logit (the first of equals) for each image of the last fill(): (steps,
    /// batch). The entries of padding, and of images without a loss by label, mean nothing. Valid only after
    /// Device::synchronize().
    [[nodiscard]] virtual std::vector<std::int32_t> predictions() const = 0;
    /// Returns the loss scale of the next step. The scale is 1 until set_loss_scale() sets the scale. Device::unscale()
    /// changes the scale. Valid only after Device::synchronize().
    [[nodiscard]] virtual LossScale loss_scale() const = 0;
    virtual void set_loss_scale(const LossScale& scale) = 0;
};

/// Returns, for each step, how many samples of its batch are not padding. StepContext::fill() uses this function.
/// Throws Error if the number of `indices` (steps, batch) is wrong, there are more than `capacity` steps, or padding is
/// not at the end of its batch.
[[nodiscard]] std::vector<std::int64_t> real_samples(std::span<const std::int64_t> indices, std::size_t steps,
                                                     std::size_t batch, std::int64_t capacity);

}  // namespace finch::backend
