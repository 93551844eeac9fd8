#include "finch/backend/device.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <omp.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

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

class CpuDevice : public Device {
public:
    explicit CpuDevice(int threads) {
        flush_denormals_to_zero();
        omp_set_num_threads(std::max(1, threads));
    }

    [[nodiscard]] std::string name() const override { return "cpu"; }

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
    void upload(std::span<const float> from, float* to) override { std::copy(from.begin(), from.end(), to); }
    void download(const float* from, std::span<float> to) override { std::copy_n(from, to.size(), to.begin()); }

    [[nodiscard]] std::unique_ptr<Operation> convolution(const ConvolutionShape& shape) override {
        return cpu::make_convolution(library_, plans_, shape);
    }
    [[nodiscard]] std::unique_ptr<Operation> pooling(const PoolingShape& shape) override {
        return cpu::make_pooling(library_, plans_, shape);
    }
    [[nodiscard]] std::unique_ptr<Operation> linear(const LinearShape& shape) override {
        return cpu::make_linear(library_, plans_, shape);
    }
    [[nodiscard]] std::unique_ptr<Operation> activation(const ActivationShape& shape) override {
        return cpu::make_activation(shape);
    }

    void softmax_cross_entropy(const float* logits, std::span<const std::int32_t> labels,
                               std::span<const float> weights, std::int64_t classes, float grad_scale, float* grad,
                               LossSums& sums) override {
        cpu::softmax_cross_entropy(logits, labels, weights, classes, grad_scale, grad, sums);
    }
    void optimizer_step(const OptimizerStep& step, float* parameters, const float* grads, float* state_a,
                        float* state_b, std::size_t count) override {
        cpu::optimizer_step(step, parameters, grads, state_a, state_b, count);
    }
    void gather_normalised(std::span<const std::uint8_t> pixels, std::int64_t pixels_per_image,
                           std::span<const std::int64_t> indices, std::span<const float> mean,
                           std::span<const float> deviation, float* out) override {
        const std::size_t channels = mean.size();
        const auto size = static_cast<std::size_t>(pixels_per_image);
        for (const std::int64_t index : indices) {
            if (index < 0) {
                std::fill_n(out, size, 0.0F);
            } else {
                const std::uint8_t* image = pixels.data() + static_cast<std::size_t>(index) * size;
                for (std::size_t i = 0; i < size; ++i) {
                    const std::size_t c = channels == 1 ? 0 : i % channels;
                    out[i] = (static_cast<float>(image[i]) / 255.0F - mean[c]) / deviation[c];
                }
            }
            out += size;
        }
    }
    void synchronize() override {}

private:
    cpu::Library library_;
    cpu::Plans plans_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int threads) {
    return std::make_unique<CpuDevice>(threads);
}

}  // namespace finch::backend
