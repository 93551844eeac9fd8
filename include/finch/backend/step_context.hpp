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

/// Sums over samples: losses in double, counts exact.
struct LossSums {
    double loss = 0;
    std::int64_t correct = 0;  ///< of those with labels
    std::int64_t samples = 0;
};

/// A data set in host memory, or with its pixels in files, and how they are normalised. The spans must stay as they are
/// while a StepContext uses them.
struct Images {
    std::span<const std::uint8_t> pixels;  ///< (samples, H, W, C), as bytes
    std::span<const std::int32_t> labels;  ///< one per sample, or
    std::span<const float> targets = {};   ///< (samples, target_size)
    std::int64_t pixels_per_image = 0;     ///< H·W·C
    std::int64_t target_size = 0;
    bool float_pixels = false;         ///< a pixel is a float, otherwise a byte
    std::vector<float> mean = {0.0F};  ///< one per channel; a pixel p becomes (p − mean) / deviation, p of a byte / 255
    std::vector<float> deviation = {1.0F};
    std::vector<float> class_weights = {};  ///< (classes), of the losses by label; empty: all 1
    [[nodiscard]] std::size_t bytes_per_image() const {
        return static_cast<std::size_t>(pixels_per_image) * (float_pixels ? sizeof(float) : 1);
    }
    /// The labels or targets as bytes, and the bytes of one sample.
    [[nodiscard]] std::span<const std::byte> answers() const {
        return targets.empty() ? std::as_bytes(labels) : std::as_bytes(targets);
    }
    [[nodiscard]] std::size_t bytes_per_answer() const {
        return targets.empty() ? sizeof(std::int32_t) : static_cast<std::size_t>(target_size) * sizeof(float);
    }

    /// The pixels' files, where they are streamed; `pixels` is then empty.
    std::shared_ptr<finch::pixels::Store> store = {};
    finch::pixels::Prefetch prefetch = {};

    /// Of every step. Pixels from outside of an image are black; cut out pixels are 0 after normalisation.
    Distortions distortions = {};
};

/// The numbers that differ from step to step.
struct StepScalars {
    float grad_scale = 0;  ///< of the loss's gradient: 1 / samples of the global batch, or their weights' sum
    float label_smoothing = 0;
    OptimizerScalars optimizer{};
    float average_share = 0;                    ///< of the step's weights in their average: 1 in the first step
    std::array<std::uint32_t, 2> random_key{};  ///< of the step, for dropout and distortions: the same on all ranks
    std::int64_t first_sample = 0;              ///< place of this rank's first sample within the global batch
};

/// Data that differ from step to step: images, labels, scalars, and the sums of the losses. It is filled for many steps
/// at once, and the device advances by itself (Device::next_step()), without a message from the host. Made by a Device,
/// for a data set and a batch size, and used with that Device only.
class StepContext {
public:
    virtual ~StepContext() = default;

    /// How many steps fill() takes at most; at least 1.
    [[nodiscard]] virtual std::int64_t capacity() const = 0;
    /// The next steps. `indices` (steps, batch): the images of each; −1, at the end of a batch only, is padding: zeros
    /// of weight 0. Only when the steps filled in before are done, and seen to be done by Device::synchronize(). Throws
    /// StorageError if streamed images cannot be read, as Device::load_batch() may in its place: it can then be
    /// filled anew.
    virtual void fill(std::span<const std::int64_t> indices, std::span<const StepScalars> steps) = 0;
    /// The images of steps that will probably be filled in after these, for streamed ones to be read beside the work.
    virtual void announce(std::span<const std::int64_t> /*indices*/) {}
    /// The losses of all steps since it was made, or set_sums(). Only after Device::synchronize().
    [[nodiscard]] virtual LossSums sums() const = 0;
    virtual void set_sums(const LossSums& sums) = 0;
    /// The loss scale of the next step: 1 until it is set; Device::unscale() changes it. Only after
    /// Device::synchronize().
    [[nodiscard]] virtual LossScale loss_scale() const = 0;
    virtual void set_loss_scale(const LossScale& scale) = 0;
};

/// For StepContext::fill(): how many samples of each step's batch are no padding. Throws Error if the number of
/// `indices` (steps, batch) is wrong, there are more than `capacity` steps, or padding is not at the end of its batch.
[[nodiscard]] std::vector<std::int64_t> real_samples(std::span<const std::int64_t> indices, std::size_t steps,
                                                     std::size_t batch, std::int64_t capacity);

}  // namespace finch::backend
