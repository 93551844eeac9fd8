#pragma once

#include "finch/backend/lap_timer.hpp"
#include "finch/backend/operation.hpp"
#include "finch/backend/optimizer.hpp"
#include "finch/backend/step_context.hpp"
#include "finch/backend/transfer.hpp"

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

/// A step that was captured once and is done many times.
class CapturedStep {
public:
    virtual ~CapturedStep() = default;

    /// Asks for the step `times` times, one after another.
    virtual void run(std::int64_t times) = 0;
    /// How long the last run() took, by the device's clock. Only after Device::synchronize().
    [[nodiscard]] virtual double seconds() const = 0;
};

/// How a captured step may be done: as a graph that the device repeats by itself, or call by call, since the host has a
/// part in it (MPI).
enum class CaptureAs { graph, calls };

/// One device that trains, as one individual sees it: memory, planned operations, and one in-order stream. All pointers
/// that its operations take are to its own memory. Plans are made once per shape and shared by all operations of that
/// shape, across individuals. Not thread-safe.
class Device {
public:
    virtual ~Device() = default;

    /// For people and files: its word in workers.device, "cpu"; a CUDA device's own name, "NVIDIA H200".
    [[nodiscard]] virtual std::string name() const = 0;
    /// Whether operations return before they are done. synchronize() then waits for them.
    [[nodiscard]] virtual bool runs_ahead() const = 0;
    [[nodiscard]] virtual bool supports(Precision precision) const = 0;
    /// The same device with a line of work of its own, beside this one. Shares memory, plans and data sets.
    [[nodiscard]] virtual std::unique_ptr<Device> new_stream() = 0;
    /// cudaStream_t, for a library that puts work of its own in line; null if the device has none.
    [[nodiscard]] virtual void* stream() const = 0;

    /// Throws std::bad_alloc.
    [[nodiscard]] virtual Buffer allocate(std::size_t floats) = 0;
    /// Whether its memory is the host's, so that the host's copies of a training (snapshots) come out of it too.
    [[nodiscard]] virtual bool is_host() const { return false; }
    /// Bytes that allocate() can still give, about.
    [[nodiscard]] virtual std::int64_t free_bytes() const = 0;
    /// Both wait: `from` may go, and `to` is there, when they return.
    virtual void upload(std::span<const float> from, float* to) = 0;
    virtual void download(const float* from, std::span<float> to) = 0;
    /// For up to `floats` at once. Throws std::bad_alloc; Error if the device has none, as where is_host(): MPI sums
    /// its memory as it is.
    [[nodiscard]] virtual std::unique_ptr<Transfer> make_transfer(std::size_t floats);

    /// Throws std::bad_alloc.
    [[nodiscard]] virtual std::unique_ptr<Operation> make(const OperationShape& shape) = 0;
    /// Bytes that an operation of this shape needs beside its inputs, outputs and parameters. The operations of a
    /// stream share them: a model needs the most of its operations'.
    [[nodiscard]] virtual std::int64_t scratch_bytes(const OperationShape& /*shape*/) { return 0; }
    /// `to` += `from`, of `count` floats.
    virtual void accumulate(const float* from, float* to, std::size_t count) = 0;
    /// `count` floats become 0.
    virtual void clear(float* values, std::size_t count) = 0;

    /// Throws std::bad_alloc.
    [[nodiscard]] virtual std::unique_ptr<StepContext> make_step_context(const Images& images, std::int64_t batch) = 0;
    /// Begins the context's next step: it is the present one from now on.
    virtual void next_step(StepContext& step) = 0;
    /// `out` (batch, H·W·C) becomes the normalised images of the present step.
    virtual void load_batch(StepContext& step, float* out) = 0;
    /// Softmax cross-entropy of `logits` (batch, classes) with the labels of the present step. Adds every sample that
    /// is no padding to the context's sums. Where `grad` (batch, classes) is not null it becomes
    /// (softmax − target) · grad_scale · the context's loss scale, and 0 for padding. A target is 1 for the label and 0
    /// for all others, of which the step's label_smoothing is spread over all classes; class weights multiply each
    /// class's part of it (torch.nn.CrossEntropyLoss).
    virtual void softmax_cross_entropy(StepContext& step, const float* logits, std::int64_t classes, float* grad) = 0;
    /// The same for the step's targets: each sample's loss is the mean over its `outputs` (torch.nn.MSELoss, L1Loss).
    virtual void regression_loss(StepContext& step, Regression kind, const float* predictions, std::int64_t outputs,
                                 float* grad) = 0;
    /// Divides `grads`, of `count` floats, those of the whole worker, by the context's loss scale, and decides by them
    /// (LossScale::decide()) whether the present step is skipped: optimizer_step() and average() then change nothing.
    virtual void unscale(StepContext& step, float* grads, std::size_t count) = 0;
    /// Scales `grads`, of `count` floats, down to the norm `most` where theirs is larger: by most / (norm + 1e-6), as
    /// torch.nn.utils.clip_grad_norm_. `scratch` has clip_scratch floats. The same bits each time.
    virtual void clip_norm(float* grads, std::size_t count, double most, float* scratch) = 0;
    static constexpr std::size_t clip_scratch = 1024;
    /// Updates `parameters` from `grads` and the optimizer's state arrays (null if it has none), all of `count`
    /// floats, by the scalars of the present step; without weight decay where not `decays`.
    virtual void optimizer_step(StepContext& step, const Optimizer& optimizer, bool decays, float* parameters,
                                const float* grads, float* state_a, float* state_b, std::size_t count) = 0;
    /// `averages` take `values` up, both of `count` floats, with the present step's average_share: averaged().
    virtual void average(StepContext& step, const float* values, float* averages, std::size_t count) = 0;

    /// A timer whose laps are taken in the order of the device's operations; null for a synchronous device, where
    /// the host's clock serves. Throws std::bad_alloc.
    [[nodiscard]] virtual std::unique_ptr<DeviceLapTimer> make_lap_timer() { return nullptr; }
    /// `work` asks this device for operations, always the same on the same memory, and must live as long as the
    /// CapturedStep. With CaptureAs::calls it may also do things of its own; it is then called each time.
    [[nodiscard]] virtual std::unique_ptr<CapturedStep> capture(std::function<void()> work, CaptureAs how) = 0;
    /// Waits until everything asked for is done.
    virtual void synchronize() = 0;
};

/// oneDNN on `threads` threads. Sets flush-to-zero on the calling thread. `free_memory`: what the process may still
/// take, for free_bytes(); without it, there is no limit.
[[nodiscard]] std::unique_ptr<Device> make_cpu_device(int threads, std::function<std::int64_t()> free_memory = {});

/// Throws ConfigError "built without CUDA" where the backend is not built.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(int index);
/// How many CUDA devices this process sees; 0 if the backend is not built.
[[nodiscard]] int cuda_device_count();

/// "2.6.3, AVX-512": oneDNN's version and the widest instructions that it uses here.
[[nodiscard]] std::string onednn_version();

/// GPUs that the CUDA backend was built for, as CMake names them, with spaces between: "80-real 90"; empty if it is
/// not built.
[[nodiscard]] std::string cuda_architectures();

}  // namespace finch::backend
