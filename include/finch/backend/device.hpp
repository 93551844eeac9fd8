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

/// Zeroed device memory for floats. Move-only. The destructor frees the memory.
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

/// A training step that is captured once and executed many times.
class CapturedStep {
public:
    virtual ~CapturedStep() = default;

    /// Enqueues `times` executions of the step, one after another. With CaptureAs::graph, the device may delay them
    /// until steps with the same kernels on its other streams can run together with them. The delay ends at the latest
    /// when other work is enqueued on this stream, or at Device::launch_waiting_steps() or synchronize().
    virtual void run(std::int64_t times) = 0;
    /// True if the last run() is delayed: its executions are not enqueued yet.
    [[nodiscard]] virtual bool waits() const { return false; }
    /// Returns the duration of the last run(), measured by the device's clock. For steps that run together, it is the
    /// time until this step's last execution, estimated. Valid only after Device::synchronize().
    [[nodiscard]] virtual double seconds() const = 0;
};

/// How a captured step is executed. `graph`: the device repeats the step without the host; if there is no memory for a
/// graph, the step runs call by call. `graph_or_error`: as a graph, because other devices take part in the step and do
/// the same. `calls`: the host executes the step call by call, because the host takes part in the step (MPI).
enum class CaptureAs { graph, graph_or_error, calls };

/// A training device as one individual uses it: memory, planned operations, and one in-order stream. All pointers
/// passed to a device's operations point to the device's own memory. The device makes one plan per shape. All
/// operations of the shape share the plan, even if they belong to different individuals. Not thread-safe.
class Device {
public:
    virtual ~Device() = default;

    /// Returns the name for logs and files: "cpu" (as in workers.device) for a CPU, otherwise the name of the CUDA
    /// device, for example "NVIDIA H200".
    [[nodiscard]] virtual std::string name() const = 0;
    /// True if operations are asynchronous: a call returns before its work is done, and synchronize() waits for the
    /// work.
    [[nodiscard]] virtual bool runs_ahead() const = 0;
    [[nodiscard]] virtual bool supports(Precision precision) const = 0;
    /// True if make() supports the shape's types of tensors, x_type and y_type. By default only float32.
    [[nodiscard]] virtual bool supports_types(const OperationShape& shape) const;
    /// True if the device computes a chain of such convolutions faster with activations in planes (Layout::planes).
    [[nodiscard]] virtual bool prefers_planes(const ConvolutionShape& /*shape*/) const { return false; }
    /// Returns how the device divides batches into blocks. By default every batch is one block.
    [[nodiscard]] virtual Blocks blocks() const { return {}; }
    /// Calls `work(replica)` for each replica in [0, `replicas`), and waits. There are at most blocks().replicas. The
    /// replicas run concurrently; replica 0 runs on the calling thread. If a replica throws, rethrows the exception of
    /// the first such replica.
    virtual void run_replicas(std::int64_t replicas, const std::function<void(std::int64_t replica)>& work);
    /// Returns the device that makes the operations of a replica. Call it, and run the operations, in run_replicas().
    [[nodiscard]] virtual std::unique_ptr<Device> replica(std::int64_t replica);
    /// Returns an object for the same device with a new stream, which runs concurrently with this object's stream. The
    /// two streams share memory, plans and data sets.
    [[nodiscard]] virtual std::unique_ptr<Device> new_stream() = 0;
    /// Returns the cudaStream_t, for a library that enqueues its own work. Returns null for a CPU device.
    [[nodiscard]] virtual void* stream() const = 0;

    /// Throws std::bad_alloc.
    [[nodiscard]] virtual Buffer allocate(std::size_t floats) = 0;
    /// True if device memory is host memory. If so, the snapshots of a training, which are copies in host memory, take
    /// memory of the device.
    [[nodiscard]] virtual bool is_host() const { return false; }
    /// Returns approximately how many bytes allocate() can still provide.
    [[nodiscard]] virtual std::int64_t free_bytes() const = 0;
    /// upload() and download() block: when they return, `from` can be reused and `to` is complete.
    virtual void upload(std::span<const float> from, float* to) = 0;
    virtual void download(const float* from, std::span<float> to) = 0;
    /// Returns a transfer for up to `floats` floats at a time. Throws std::bad_alloc. Throws Error if the device does
    /// not support transfers. A device whose memory is host memory needs no transfer, because MPI sums the memory
    /// directly.
    [[nodiscard]] virtual std::unique_ptr<Transfer> make_transfer(std::size_t floats);

    /// Throws std::bad_alloc.
    [[nodiscard]] virtual std::unique_ptr<Operation> make(const OperationShape& shape) = 0;
    /// Returns the scratch bytes that an operation of this shape needs in addition to its inputs, outputs and
    /// parameters. The operations of a stream share their scratch memory, so a model needs the maximum over its
    /// operations.
    [[nodiscard]] virtual std::int64_t scratch_bytes(const OperationShape& /*shape*/) { return 0; }
    /// Returns the bytes that an operation of this shape keeps for each thread, beyond those in ModelPlan::bytes.
    [[nodiscard]] virtual std::int64_t kept_bytes(const OperationShape& /*shape*/) { return 0; }
    /// Enqueues the work that earlier calls of Operation::pack() and, if Operation::defers_grads(), of backward() have
    /// deferred.
    virtual void finish_deferred() {}
    /// Adds `count` numbers of `from` to `to`. `type` is float32, or bfloat16 if the device stores activations as
    /// bfloat16; then `count` is a multiple of 8.
    virtual void accumulate(const float* from, float* to, std::size_t count, TensorType type = TensorType::float32) = 0;
    /// Sets `count` floats to 0.
    virtual void clear(float* values, std::size_t count) = 0;

    /// Throws std::bad_alloc.
    [[nodiscard]] virtual std::unique_ptr<StepContext> make_step_context(const Images& images, std::int64_t batch) = 0;
    /// Advances the context to its next step, which becomes the current step. Call load_batch() next, and later one
    /// loss: each once per step, or once per block of its batch (StepContext::block()). On a GPU these two do the work
    /// of next_step(): load_batch() begins the step, and the loss ends it.
    virtual void next_step(StepContext& step) = 0;
    /// Writes the normalised images of the current step to `out` (batch, H·W·C).
    virtual void load_batch(StepContext& step, float* out) = 0;
    /// Computes the softmax cross-entropy of `logits` (batch, classes) for the labels of the current step, as
    /// torch.nn.CrossEntropyLoss does. Adds every sample except padding to the sums of the step context. If `grad`
    /// (batch, classes) is not null, sets `grad` to (softmax · sum of the targets − target) · grad_scale · the
    /// context's loss scale. For padding, `grad` becomes 0. A target is 1 for the label and 0 for all other classes.
    /// StepScalars::label_smoothing is the part of the target that is spread evenly over all classes. Class weights
    /// multiply the target of their class.
    virtual void softmax_cross_entropy(StepContext& step, const float* logits, std::int64_t classes, float* grad) = 0;
    /// Like softmax_cross_entropy(), but computes the regression loss for the targets of the current step. The loss of
    /// a sample is the mean over its `outputs` (torch.nn.MSELoss, L1Loss).
    virtual void regression_loss(StepContext& step, Regression kind, const float* predictions, std::int64_t outputs,
                                 float* grad) = 0;
    /// Divides `grads` (`count` floats, the gradients of the whole worker) by the context's loss scale. Then calls
    /// LossScale::decide(), which skips the current step if one of the gradients is not finite. If the step is skipped,
    /// optimizer_step() and average() change nothing.
    virtual void unscale(StepContext& step, float* grads, std::size_t count) = 0;
    /// Scales `grads` (`count` floats) down to the norm `most` if their norm is larger. The factor is most / (norm +
    /// 1e-6), as in torch.nn.utils.clip_grad_norm_. `scratch` has clip_scratch floats. The result is bitwise
    /// reproducible.
    virtual void clip_norm(float* grads, std::size_t count, double most, float* scratch) = 0;
    static constexpr std::size_t clip_scratch = 1024;
    /// Updates `ranges` of `parameters` and of the optimizer's state arrays from `grads` with the scalars of the
    /// current step. A state array that the optimizer does not use is null.
    virtual void optimizer_step(StepContext& step, const Optimizer& optimizer, std::span<const ParameterRange> ranges,
                                float* parameters, const float* grads, float* state_a, float* state_b) = 0;
    /// Updates `averages` from `values`: applies averaged() to each pair with the current step's average_share.
    /// `values` and `averages` have `count` floats each.
    virtual void average(StepContext& step, const float* values, float* averages, std::size_t count) = 0;

    /// Returns a timer that begins its laps in the order of the device's operations. Returns null for a synchronous
    /// device, for which the host's clock is sufficient. Throws std::bad_alloc.
    [[nodiscard]] virtual std::unique_ptr<DeviceLapTimer> make_lap_timer() { return nullptr; }
    /// Captures a step. Each call of `work` must enqueue the same operations on the same memory of this device.
    /// Everything that `work` uses must outlive the CapturedStep. With CaptureAs::calls, `work` is called for each step
    /// and may also run host code.
    [[nodiscard]] virtual std::unique_ptr<CapturedStep> capture(std::function<void()> work, CaptureAs how) = 0;
    /// Enqueues all delayed executions (CapturedStep::waits()), on all streams of the device.
    virtual void launch_waiting_steps() {}
    /// Waits until all enqueued operations are done.
    virtual void synchronize() = 0;
};

/// Returns a CPU device that runs oneDNN on `threads` threads. Sets flush-to-zero on the calling thread. free_bytes()
/// calls `free_memory`, which must return the number of bytes that the process may still allocate. If `free_memory` is
/// empty, there is no limit. Throws ConfigError if the environment variable FINCH_WINOGRAD_TILE is wrong.
[[nodiscard]] std::unique_ptr<Device> make_cpu_device(int threads, std::function<std::int64_t()> free_memory = {});

/// `ranks` is the number of this run's ranks that use the device. Throws ConfigError "built without CUDA" if the CUDA
/// backend is not built.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(int index, int ranks = 1);
/// Returns the number of CUDA devices that this process sees; 0 if the CUDA backend is not built.
[[nodiscard]] int cuda_device_count();

/// Returns oneDNN's version and the widest instruction set that oneDNN uses on this machine, for example "2.6.3, AVX2".
[[nodiscard]] std::string onednn_version();

/// Returns, as text, the GPU architectures that the CUDA backend was built for, in CMake's notation and separated by
/// spaces, for example "80-real 90". The text is empty if the CUDA backend is not built.
[[nodiscard]] std::string cuda_architectures();

}  // namespace finch::backend
