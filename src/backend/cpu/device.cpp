#include "finch/backend/device.hpp"

#include "finch/base/clock.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <new>
#include <omp.h>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "elementwise.hpp"
#include "library.hpp"
#include "operations.hpp"
#include "own_convolution.hpp"
#include "rounding.hpp"
#include "step_context.hpp"

namespace finch::backend {
namespace {

constexpr std::size_t alignment = 64;  ///< bytes: a cache line, and oneDNN's widest vector

/// Enables flush-to-zero. Denormal numbers make some passes nine times slower, and training does not need them.
void flush_denormals_to_zero() {
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040U);  // flush to zero, denormals are zero
#endif
}

/// State that all streams of a CPU device share.
struct Shared {
    cpu::Library library;
    cpu::Plans plans;
    std::function<std::int64_t()> free_memory;
    std::vector<std::shared_ptr<Shared>> replicas = {};  ///< one per thread; null until the replica is used
};

std::shared_ptr<Shared> make_shared_state(std::function<std::int64_t()> free_memory) {
    auto shared = cpu::call([] { return std::make_shared<Shared>(); });
    shared->free_memory = std::move(free_memory);
    return shared;
}

/// Calls work(replica) for each replica in its own thread. In these threads, parallel regions are serial.
void run_concurrently(std::int64_t replicas, const std::function<void(std::int64_t replica)>& work) {
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(replicas));
#pragma omp parallel for schedule(static) num_threads(static_cast <int>(replicas)) if (replicas > 1)
    for (std::int64_t replica = 0; replica < replicas; ++replica) {
        omp_set_num_threads(1);  // in this region only
        try {
            work(replica);
        } catch (const std::exception&) {
            failures[static_cast<std::size_t>(replica)] = std::current_exception();
        }
    }
    for (const std::exception_ptr& failure : failures) {
        if (failure) {
            std::rethrow_exception(failure);
        }
    }
}

class CpuStep : public CapturedStep {
public:
    explicit CpuStep(std::function<void()> work) : work_(std::move(work)) {}
    void run(std::int64_t times) override {
        const double begin = steady_seconds();
        for (; times > 0; --times) {
            work_();
        }
        seconds_ = steady_seconds() - begin;
    }
    [[nodiscard]] double seconds() const override { return seconds_; }

private:
    std::function<void()> work_;
    double seconds_ = 0;
};

class CpuDevice : public Device {
public:
    explicit CpuDevice(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

    [[nodiscard]] std::string name() const override { return "cpu"; }
    [[nodiscard]] bool runs_ahead() const override { return false; }
    [[nodiscard]] bool supports(Precision precision) const override {
        return precision == Precision::float32 || (precision == Precision::bfloat16 && cpu::has_bfloat16());
    }
    /// A block of 1 MiB fits the L2 cache, or one core's share of the L3 cache, of usual processors. The size of this
    /// machine's caches must not influence the results.
    [[nodiscard]] Blocks blocks() const override {
        return {.bytes = 1024 * 1024, .replicas = std::ssize(shared_->replicas)};
    }
    void run_replicas(std::int64_t replicas, const std::function<void(std::int64_t replica)>& work) override {
        run_concurrently(replicas, work);
    }
    [[nodiscard]] std::unique_ptr<Device> replica(std::int64_t replica) override {
        std::shared_ptr<Shared>& shared = shared_->replicas.at(static_cast<std::size_t>(replica));
        if (!shared) {
            shared = make_shared_state(shared_->free_memory);
        }
        return std::make_unique<CpuDevice>(shared);
    }
    [[nodiscard]] bool prefers_planes(const ConvolutionShape& shape) const override {
        return cpu::prefers_planes(shape);
    }
    [[nodiscard]] std::unique_ptr<Device> new_stream() override { return std::make_unique<CpuDevice>(shared_); }
    [[nodiscard]] void* stream() const override { return nullptr; }

    [[nodiscard]] Buffer allocate(std::size_t count) override {
        const std::size_t bytes =
            (std::max<std::size_t>(1, count) * sizeof(float) + alignment - 1) / alignment * alignment;
        auto* data = static_cast<float*>(std::aligned_alloc(alignment, bytes));
        if (data == nullptr) {
            throw std::bad_alloc();
        }
        std::memset(data, 0, bytes);
        return Buffer(data, count, [](float* memory) { std::free(memory); });
    }
    [[nodiscard]] bool is_host() const override { return true; }
    [[nodiscard]] std::int64_t free_bytes() const override {
        return shared_->free_memory ? shared_->free_memory() : std::numeric_limits<std::int64_t>::max();
    }
    void upload(std::span<const float> from, float* to) override { std::copy(from.begin(), from.end(), to); }
    void download(const float* from, std::span<float> to) override { std::copy_n(from, to.size(), to.begin()); }

    [[nodiscard]] std::unique_ptr<Operation> make(const OperationShape& shape) override {
        return std::visit([&](const auto& known) { return cpu::make(shared_->library, shared_->plans, known); }, shape);
    }
    [[nodiscard]] std::int64_t scratch_bytes(const OperationShape& shape) override {
        return std::visit([](const auto& known) { return cpu::scratch_bytes(known); }, shape);
    }
    [[nodiscard]] std::int64_t kept_bytes(const OperationShape& shape) override {
        const auto* const convolution = std::get_if<ConvolutionShape>(&shape);
        return convolution != nullptr ? cpu::kept_bytes(*convolution) : 0;
    }
    void accumulate(const float* from, float* to, std::size_t count, TensorType /*float32*/) override {
        cpu::accumulate(from, to, count);
    }

    void clear(float* values, std::size_t count) override { std::fill_n(values, count, 0.0F); }

    [[nodiscard]] std::unique_ptr<StepContext> make_step_context(const Images& images, std::int64_t batch) override {
        return std::make_unique<cpu::CpuStepContext>(images, batch);
    }
    void next_step(StepContext& step) override { cpu::own(step).next_step(); }
    void load_batch(StepContext& step, float* out) override { cpu::own(step).load_batch(out); }
    void softmax_cross_entropy(StepContext& step, const float* logits, std::int64_t classes, float* grad) override {
        cpu::own(step).softmax_cross_entropy(logits, classes, grad);
    }
    void regression_loss(StepContext& step, Regression kind, const float* predictions, std::int64_t outputs,
                         float* grad) override {
        cpu::own(step).regression_loss(kind, predictions, outputs, grad);
    }
    void unscale(StepContext& step, float* grads, std::size_t count) override {
        cpu::CpuStepContext& context = cpu::own(step);
        context.decide(cpu::unscale(grads, 1 / context.loss_scale().scale, count));
    }
    void clip_norm(float* grads, std::size_t count, double most, float* /*scratch*/) override {
        cpu::clip_norm(grads, count, most);
    }
    void optimizer_step(StepContext& step, const Optimizer& optimizer, std::span<const ParameterRange> ranges,
                        float* parameters, const float* grads, float* state_a, float* state_b) override {
        if (cpu::own(step).skips()) {
            return;
        }
        const OptimizerScalars& numbers = cpu::own(step).scalars().optimizer;
        for (const ParameterRange& range : ranges) {
            const auto at = [&](float* state) { return state != nullptr ? state + range.begin : nullptr; };
            cpu::optimizer_step(optimizer, range.decays ? numbers : without_decay(numbers), parameters + range.begin,
                                grads + range.begin, at(state_a), at(state_b), range.size);
        }
    }
    void average(StepContext& step, const float* values, float* averages, std::size_t count) override {
        if (!cpu::own(step).skips()) {
            cpu::average(values, averages, cpu::own(step).scalars().average_share, count);
        }
    }

    [[nodiscard]] std::unique_ptr<CapturedStep> capture(std::function<void()> work, CaptureAs /*how*/) override {
        return std::make_unique<CpuStep>(std::move(work));
    }
    void synchronize() override {}

private:
    std::shared_ptr<Shared> shared_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int threads, std::function<std::int64_t()> free_memory) {
    flush_denormals_to_zero();
    static_cast<void>(cpu::may_use_large_tiles());  // a wrong environment is refused here
    omp_set_num_threads(std::max(1, threads));
    auto shared = make_shared_state(std::move(free_memory));
    shared->replicas.resize(static_cast<std::size_t>(std::max(1, threads)));
    return std::make_unique<CpuDevice>(std::move(shared));
}

}  // namespace finch::backend
