#include "finch/backend/cuda.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "feed.hpp"
#include "operations.hpp"
#include "program.hpp"
#include "steps.hpp"
#include "stream.hpp"

#include <limits>
#include <new>
#include <utility>

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
            .shared_bytes_most = properties.sharedMemPerBlockOptin};
}

class CudaDevice : public Device {
public:
    CudaDevice(std::shared_ptr<Shared> shared, CudaPath path) : stream_(std::move(shared)), path_(path) {}

    [[nodiscard]] std::string name() const override { return stream_.facts().name; }
    [[nodiscard]] bool runs_ahead() const override { return true; }
    [[nodiscard]] bool supports(Precision) const override { return true; }
    [[nodiscard]] std::unique_ptr<Device> new_stream() override {
        return std::make_unique<CudaDevice>(stream_.shared(), path_);
    }
    [[nodiscard]] void* stream() const override { return stream_.get(); }

    [[nodiscard]] Buffer allocate(std::size_t floats) override {
        if (floats > std::numeric_limits<std::size_t>::max() / sizeof(float)) {
            throw std::bad_alloc();
        }
        const auto memory = std::make_shared<StreamMemory>(stream_.allocate(floats * sizeof(float)));
        return {static_cast<float*>(memory->get()), floats, [held = memory](float*) mutable { held.reset(); }};
    }
    [[nodiscard]] std::int64_t free_bytes() const override { return static_cast<std::int64_t>(stream_.free_bytes()); }
    void upload(std::span<const float> from, float* to) override {
        copy(from.data(), to, from.size_bytes(), cudaMemcpyHostToDevice);
    }
    void download(const float* from, std::span<float> to) override {
        copy(from, to.data(), to.size_bytes(), cudaMemcpyDeviceToHost);
    }

    [[nodiscard]] std::unique_ptr<Operation> convolution(const ConvolutionShape& shape) override {
        const bool own = path_ != CudaPath::library && direct_convolution_suits(shape, stream_.facts());
        return own ? make_direct_convolution(stream_, shape) : make_cudnn_convolution(stream_, shape);
    }
    [[nodiscard]] std::int64_t scratch_bytes(const ConvolutionShape& shape) override {
        const bool own = path_ != CudaPath::library && direct_convolution_suits(shape, stream_.facts());
        return static_cast<std::int64_t>(own ? direct_convolution_scratch(stream_, shape)
                                             : cudnn_convolution_scratch(stream_, shape));
    }
    [[nodiscard]] std::int64_t scratch_bytes(const LinearShape& shape) override {
        const bool own = path_ != CudaPath::library && direct_linear_suits(shape);
        return static_cast<std::int64_t>(own ? direct_linear_scratch(stream_, shape)
                                             : cublas_linear_scratch(stream_, shape));
    }
    [[nodiscard]] std::unique_ptr<Operation> pooling(const PoolingShape& shape) override {
        return make_pooling(stream_, shape);
    }
    [[nodiscard]] std::unique_ptr<Operation> linear(const LinearShape& shape) override {
        const bool own = path_ != CudaPath::library && direct_linear_suits(shape);
        return own ? make_direct_linear(stream_, shape) : make_cublas_linear(stream_, shape);
    }
    [[nodiscard]] std::unique_ptr<Operation> activation(const ActivationShape& shape) override {
        return make_activation(stream_, shape);
    }

    [[nodiscard]] std::unique_ptr<Feed> make_feed(const Images& images, std::int64_t batch) override {
        return std::make_unique<CudaFeed>(stream_, images, batch);
    }
    void gather(Feed& feed, float* out) override { launch_gather(stream_.get(), own(feed).view(), out); }
    void softmax_cross_entropy(Feed& feed, const float* logits, std::int64_t classes, float* grad) override {
        launch_softmax_cross_entropy(stream_.get(), own(feed).view(), logits, classes, grad);
    }
    void optimizer_step(Feed& feed, float* parameters, const float* grads, float* state_a, float* state_b,
                        std::size_t count) override {
        launch_optimizer_step(stream_.get(), own(feed).optimizer(), own(feed).view().state, parameters, grads, state_a,
                              state_b, count);
    }

    [[nodiscard]] std::unique_ptr<Program> record(std::function<void()> work, Recording recording) override {
        return std::make_unique<GraphProgram>(stream_, std::move(work), recording);
    }
    void synchronize() override { FINCH_CUDA(cudaStreamSynchronize(stream_.get())); }

private:
    [[nodiscard]] static CudaFeed& own(Feed& feed) { return dynamic_cast<CudaFeed&>(feed); }

    void copy(const void* from, void* to, std::size_t bytes, cudaMemcpyKind kind) {
        FINCH_CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream_.get()));
        FINCH_CUDA(cudaStreamSynchronize(stream_.get()));
    }

    Stream stream_;
    CudaPath path_;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(int index, CudaPath path) {
    ask_for_queues();
    FINCH_CUDA(cudaSetDevice(index));
    const DeviceFacts facts = facts_of(index);
    if (facts.capability < 80) {
        throw ConfigError(
            fmt::format("workers.device: cuda:{} ({}) has compute capability {}.{}; Finch needs 8.0 (A100) "
                        "or later; workers.device: cpu serves",
                        index, facts.name, facts.capability / 10, facts.capability % 10));
    }
    return std::make_unique<CudaDevice>(std::make_shared<Shared>(facts), path);
}

std::unique_ptr<Device> make_cuda_device(int index) {
    return make_cuda_device(index, CudaPath::automatic);
}

}  // namespace finch::backend
