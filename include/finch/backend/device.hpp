#pragma once

#include "finch/backend/operation.hpp"
#include "finch/backend/optimizer_step.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace finch::backend {

/// Zeroed memory of a device, for floats. Move-only; freed with it.
class Buffer {
public:
    Buffer() = default;
    Buffer(float* data, std::size_t size, std::function<void(float*)> free);

    [[nodiscard]] float* data() const noexcept { return data_.get(); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::span<float> span() const noexcept { return {data_.get(), size_}; }

private:
    std::unique_ptr<float, std::function<void(float*)>> data_;
    std::size_t size_ = 0;
};

/// Sums over samples: losses in double, counts exact.
struct LossSums {
    double loss = 0;
    std::int64_t correct = 0;
    std::int64_t samples = 0;
};

/// One device that trains: memory and planned operations. All pointers that its operations take are to its own memory.
/// Plans are made once per shape and shared by all operations of that shape, across individuals. Not thread-safe.
class Device {
public:
    virtual ~Device() = default;

    /// For people and files: "cpu", "NVIDIA H200".
    [[nodiscard]] virtual std::string name() const = 0;
    /// Throws std::bad_alloc.
    [[nodiscard]] virtual Buffer allocate(std::size_t floats) = 0;
    virtual void upload(std::span<const float> from, float* to) = 0;
    virtual void download(const float* from, std::span<float> to) = 0;

    [[nodiscard]] virtual std::unique_ptr<Operation> convolution(const ConvolutionShape& shape) = 0;
    [[nodiscard]] virtual std::unique_ptr<Operation> pooling(const PoolingShape& shape) = 0;
    [[nodiscard]] virtual std::unique_ptr<Operation> linear(const LinearShape& shape) = 0;
    [[nodiscard]] virtual std::unique_ptr<Operation> activation(const ActivationShape& shape) = 0;

    /// Softmax cross-entropy. `logits` (N, classes); `labels` N (host memory); `weights` N (host memory): 1 for a real
    /// sample, 0 for padding. Adds to `sums` every sample of weight 1. Where `grad` (N, classes) is not null it becomes
    /// (softmax − onehot) · weight · `grad_scale`.
    virtual void softmax_cross_entropy(const float* logits, std::span<const std::int32_t> labels,
                                       std::span<const float> weights, std::int64_t classes, float grad_scale,
                                       float* grad, LossSums& sums) = 0;

    /// Updates `parameters` from `grads` and the optimizer's state arrays, all of `count` floats.
    virtual void optimizer_step(const OptimizerStep& step, float* parameters, const float* grads, float* state_a,
                                float* state_b, std::size_t count) = 0;

    /// `out` (count, H·W·C) becomes ((pixel / 255) − mean[c]) / deviation[c] of the images `indices` of `pixels`
    /// (samples, H, W, C); an index of −1 gives zeros. `mean` and `deviation` have C entries.
    virtual void gather_normalised(std::span<const std::uint8_t> pixels, std::int64_t pixels_per_image,
                                   std::span<const std::int64_t> indices, std::span<const float> mean,
                                   std::span<const float> deviation, float* out) = 0;

    /// Waits until everything asked for is done.
    virtual void synchronize() = 0;
};

/// oneDNN on `threads` threads. Sets flush-to-zero on the calling thread.
[[nodiscard]] std::unique_ptr<Device> make_cpu_device(int threads);

/// Throws ConfigError "built without CUDA" where the backend is not built.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(int index);
/// How many CUDA devices this process sees; 0 where the backend is not built.
[[nodiscard]] int cuda_device_count();

}  // namespace finch::backend
