#include "finch/backend/cuda.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "captured_step.hpp"
#include "gang.hpp"
#include "lap_timer.hpp"
#include "operations.hpp"
#include "step_context.hpp"
#include "steps.hpp"
#include "stream.hpp"
#include "transfer.hpp"

#include <limits>
#include <new>
#include <utility>
#include <variant>

namespace finch::backend {
namespace {

using namespace cuda;

DeviceFacts facts_of(int index) {
    cudaDeviceProp properties;
    FINCH_CUDA(cudaGetDeviceProperties(&properties, index));
    return {.index = index,
            .name = properties.name,
            .multiprocessors = properties.multiProcessorCount,
            .capability = 10 * properties.major + properties.minor,
            .shared_bytes_most = properties.sharedMemPerBlockOptin,
            .can_cooperate = properties.cooperativeLaunch != 0};
}

class CudaDevice : public Device {
public:
    CudaDevice(std::shared_ptr<Shared> shared, CudaPath path) : stream_(std::move(shared)), path_(path) {}

    [[nodiscard]] std::string name() const override { return stream_.facts().name; }
    [[nodiscard]] bool runs_ahead() const override { return true; }
    [[nodiscard]] bool supports(Precision) const override { return true; }
    [[nodiscard]] bool supports_types(const OperationShape& shape) const override {
        return Device::supports_types(shape) ||
               std::visit([this](const auto& known) { return stores_bfloat16(known); }, shape);
    }
    [[nodiscard]] std::unique_ptr<Device> new_stream() override {
        return std::make_unique<CudaDevice>(stream_.shared(), path_);
    }
    [[nodiscard]] void* stream() const override { return stream_.get(); }

    [[nodiscard]] Buffer allocate(std::size_t floats) override {
        if (floats > std::numeric_limits<std::size_t>::max() / sizeof(float)) {
            throw std::bad_alloc();
        }
        StreamMemory memory = stream_.allocate(floats * sizeof(float));
        Buffer buffer(static_cast<float*>(memory.get()), floats, memory.get_deleter());
        static_cast<void>(memory.release());
        return buffer;
    }
    [[nodiscard]] std::int64_t free_bytes() const override { return static_cast<std::int64_t>(stream_.free_bytes()); }
    void upload(std::span<const float> from, float* to) override {
        copy(from.data(), to, from.size_bytes(), cudaMemcpyHostToDevice);
    }
    void download(const float* from, std::span<float> to) override {
        copy(from, to.data(), to.size_bytes(), cudaMemcpyDeviceToHost);
    }
    [[nodiscard]] std::unique_ptr<Transfer> make_transfer(std::size_t floats) override {
        return std::make_unique<CudaTransfer>(stream_.get(), floats);
    }

    [[nodiscard]] std::unique_ptr<Operation> make(const OperationShape& shape) override {
        return std::visit(
            [&](const auto& known) {
                if constexpr (requires { make_direct(stream_, known); }) {
                    return is_direct(known) ? make_direct(stream_, known) : make_library(stream_, known);
                } else {
                    return cuda::make(stream_, known);
                }
            },
            shape);
    }
    [[nodiscard]] std::int64_t scratch_bytes(const OperationShape& shape) override {
        return static_cast<std::int64_t>(bytes_of(shape).scratch);
    }
    [[nodiscard]] std::int64_t kept_bytes(const OperationShape& shape) override {
        return static_cast<std::int64_t>(bytes_of(shape).kept);
    }
    void finish_deferred() override { cuda::finish_deferred(stream_); }
    void accumulate(const float* from, float* to, std::size_t count, TensorType type) override {
        cuda::accumulate(stream_.get(), from, to, static_cast<std::int64_t>(count), type);
    }

    void clear(float* values, std::size_t count) override {
        FINCH_CUDA(cudaMemsetAsync(values, 0, count * sizeof(float), stream_.get()));
    }

    [[nodiscard]] std::unique_ptr<StepContext> make_step_context(const Images& images, std::int64_t batch) override {
        return std::make_unique<CudaStepContext>(stream_, images, batch);
    }
    void next_step(StepContext& /*step*/) override {}  // load_batch() begins the step, and the loss ends it
    void load_batch(StepContext& step, float* out) override { launch_load_batch(stream_.get(), own(step).view(), out); }
    void softmax_cross_entropy(StepContext& step, const float* logits, std::int64_t classes, float* grad) override {
        launch_softmax_cross_entropy(stream_.get(), own(step).view(), logits, classes, grad);
    }
    void regression_loss(StepContext& step, Regression kind, const float* predictions, std::int64_t outputs,
                         float* grad) override {
        launch_regression_loss(stream_.get(), own(step).view(), kind, predictions, outputs, grad);
    }
    void unscale(StepContext& step, float* grads, std::size_t count) override {
        launch_unscale(stream_.get(), own(step).view().state, grads, count);
    }
    void clip_norm(float* grads, std::size_t count, double most, float* scratch) override {
        launch_clip_norm(stream_.get(), grads, count, most, reinterpret_cast<double*>(scratch));
    }
    void optimizer_step(StepContext& step, const Optimizer& optimizer, std::span<const ParameterRange> ranges,
                        float* parameters, const float* grads, float* state_a, float* state_b) override {
        launch_optimizer_step(stream_.get(), optimizer, ranges, own(step).view().state, parameters, grads, state_a,
                              state_b);
    }
    void average(StepContext& step, const float* values, float* averages, std::size_t count) override {
        launch_average(stream_.get(), own(step).view().state, values, averages, count);
    }

    [[nodiscard]] std::unique_ptr<DeviceLapTimer> make_lap_timer() override {
        return std::make_unique<CudaLapTimer>(stream_);
    }
    [[nodiscard]] std::unique_ptr<CapturedStep> capture(std::function<void()> work, CaptureAs how) override {
        return std::make_unique<CudaCapturedStep>(stream_, std::move(work), how);
    }
    void launch_waiting_steps() override { stream_.shared()->gangs->launch_waiting(); }
    void synchronize() override { FINCH_CUDA(cudaStreamSynchronize(stream_.get())); }

private:
    [[nodiscard]] bool is_direct(const auto& shape) const {
        return path_ != CudaPath::library && direct_suits(stream_.facts(), shape);
    }

    [[nodiscard]] OperationBytes bytes_of(const OperationShape& shape) {
        return std::visit(
            [&](const auto& known) -> OperationBytes {
                if constexpr (requires { direct_bytes(stream_, known); }) {
                    return is_direct(known) ? direct_bytes(stream_, known) : library_bytes(stream_, known);
                } else if constexpr (requires { scratch(stream_, known); }) {
                    return {.scratch = scratch(stream_, known)};
                } else {
                    return {};
                }
            },
            shape);
    }

    /// Returns whether an operation supports a shape of which at least one tensor is bfloat16. Some kernels read 8
    /// numbers at once, and tensor cores need channels in multiples of 8.
    [[nodiscard]] bool stores_bfloat16(const auto& shape) const {
        const auto is_narrow = [](TensorType type) { return type == TensorType::bfloat16; };
        if constexpr (requires { shape.channels_in; }) {
            return shape.precision == Precision::bfloat16 && !is_direct(shape) &&
                   shape.padding_before == shape.padding_after &&
                   (!is_narrow(shape.x_type) || shape.channels_in % 8 == 0) &&
                   (!is_narrow(shape.y_type) || shape.channels_out % 8 == 0);
        } else if constexpr (requires { shape.momentum; }) {
            return shape.channels % 8 == 0;
        } else if constexpr (requires { shape.count; }) {
            return is_narrow(shape.x_type) && is_narrow(shape.y_type) && shape.count % 8 == 0;
        } else if constexpr (requires { shape.rows; }) {
            return is_narrow(shape.x_type) && is_narrow(shape.y_type) && shape.first % 8 == 0 && shape.second % 8 == 0;
        } else if constexpr (requires { shape.x_type; }) {
            return is_narrow(shape.x_type) && shape.channels % 8 == 0;
        } else {
            return false;
        }
    }

    void copy(const void* from, void* to, std::size_t bytes, cudaMemcpyKind kind) {
        FINCH_CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream_.get()));
        FINCH_CUDA(cudaStreamSynchronize(stream_.get()));
    }

    Stream stream_;
    CudaPath path_;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(int index, CudaPath path, int ranks) {
    ask_for_queues();
    FINCH_CUDA(cudaSetDevice(index));
    DeviceFacts facts = facts_of(index);
    facts.ranks = ranks;
    if (facts.capability < 80) {
        throw ConfigError(
            fmt::format("workers.device: cuda:{} ({}) has compute capability {}.{}; Finch needs 8.0 (A100) "
                        "or later; workers.device: cpu serves",
                        index, facts.name, facts.capability / 10, facts.capability % 10));
    }
    return std::make_unique<CudaDevice>(std::make_shared<Shared>(facts), path);
}

std::unique_ptr<Device> make_cuda_device(int index, int ranks) {
    return make_cuda_device(index, CudaPath::automatic, ranks);
}

}  // namespace finch::backend
