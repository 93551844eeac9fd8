#include "finch/backend/device.hpp"

#include "finch/base/clock.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <omp.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "feed.hpp"
#include "library.hpp"
#include "loops.hpp"
#include "operations.hpp"

namespace finch::backend {
namespace {

constexpr std::size_t alignment = 64;  ///< bytes: a cache line, and oneDNN's widest vector

/// Denormal numbers make some passes nine times slower, and are nothing a training could need.
void flush_denormals_to_zero() {
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040U);  // flush to zero, denormals are zero
#endif
}

/// What all lines of work share.
struct Shared {
    cpu::Library library;
    cpu::Plans plans;
    std::function<std::int64_t()> free_memory;
};

class CpuProgram : public Program {
public:
    explicit CpuProgram(std::function<void()> work) : work_(std::move(work)) {}
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
    [[nodiscard]] bool supports(Precision precision) const override { return precision == Precision::float32; }
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

    [[nodiscard]] std::unique_ptr<Operation> convolution(const ConvolutionShape& shape) override {
        return cpu::make_convolution(shared_->library, shared_->plans, shape);
    }
    [[nodiscard]] std::unique_ptr<Operation> pooling(const PoolingShape& shape) override {
        return cpu::make_pooling(shared_->library, shared_->plans, shape);
    }
    [[nodiscard]] std::unique_ptr<Operation> linear(const LinearShape& shape) override {
        return cpu::make_linear(shared_->library, shared_->plans, shape);
    }
    [[nodiscard]] std::unique_ptr<Operation> activation(const ActivationShape& shape) override {
        return cpu::make_activation(shape);
    }

    [[nodiscard]] std::unique_ptr<Feed> make_feed(const Images& images, std::int64_t batch) override {
        return std::make_unique<cpu::CpuFeed>(images, batch);
    }
    void gather(Feed& feed, float* out) override { own(feed).gather(out); }
    void softmax_cross_entropy(Feed& feed, const float* logits, std::int64_t classes, float* grad) override {
        own(feed).softmax_cross_entropy(logits, classes, grad);
    }
    void optimizer_step(Feed& feed, float* parameters, const float* grads, float* state_a, float* state_b,
                        std::size_t count) override {
        cpu::optimizer_step(own(feed).ended_step().optimizer, parameters, grads, state_a, state_b, count);
    }

    [[nodiscard]] std::unique_ptr<Program> record(std::function<void()> work, Recording) override {
        return std::make_unique<CpuProgram>(std::move(work));
    }
    void synchronize() override {}

private:
    [[nodiscard]] static cpu::CpuFeed& own(Feed& feed) { return dynamic_cast<cpu::CpuFeed&>(feed); }

    std::shared_ptr<Shared> shared_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int threads, std::function<std::int64_t()> free_memory) {
    flush_denormals_to_zero();
    omp_set_num_threads(std::max(1, threads));
    auto shared = cpu::call([] { return std::make_shared<Shared>(); });
    shared->free_memory = std::move(free_memory);
    return std::make_unique<CpuDevice>(std::move(shared));
}

}  // namespace finch::backend
