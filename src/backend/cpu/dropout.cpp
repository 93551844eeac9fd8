#include "finch/backend/dropout_mask.hpp"

#include "operations.hpp"
#include "step_context.hpp"
#include "vectorised.hpp"

#include <cstring>

namespace finch::backend::cpu {
namespace {

/// Multiplies one sample x of `features` values by its dropout factors.
FINCH_VECTORISED void drop(const DropoutMask& of, std::int64_t place, const float* __restrict x, float* __restrict y,
                           std::int64_t features) {
    const DropoutMask mask = of;
    const std::int64_t blocks = features / 4;
    for (std::int64_t block = 0; block < blocks; ++block) {
        const PhiloxCounter words = mask.words(place, static_cast<std::uint32_t>(block));
        for (int i = 0; i < 4; ++i) {
            y[4 * block + i] = x[4 * block + i] * mask.factor(words.word[i]);
        }
    }
    const PhiloxCounter words = mask.words(place, static_cast<std::uint32_t>(blocks));
    for (std::int64_t i = 4 * blocks; i < features; ++i) {
        y[i] = x[i] * mask.factor(words.word[i - 4 * blocks]);
    }
}

class DropoutOperation : public Operation {
public:
    explicit DropoutOperation(const DropoutShape& shape)
        : shape_(shape), mask_(dropout_mask(shape.rate, shape.layer)) {}

    void forward(const Pass& pass, std::span<const float* const> x, float* y) override {
        if (pass.mode == Mode::training) {
            drop_batch(pass, x[0], y);
        } else {
            std::memcpy(y, x[0], static_cast<std::size_t>(shape_.batch * shape_.features) * sizeof(float));
        }
    }
    void backward(const Pass& pass, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        drop_batch(pass, grad_y, grad_x[0]);
    }
    [[nodiscard]] std::string implementation() const override { return "finch:loop"; }

private:
    void drop_batch(const Pass& pass, const float* x, float* y) const {
        const CpuStepContext& step = own(pass.step);
        DropoutMask mask = mask_;
        mask.key = {{step.scalars().random_key[0], step.scalars().random_key[1]}};
        const std::int64_t batch = shape_.batch;
        const std::int64_t features = shape_.features;
#pragma omp parallel for schedule(static)
        for (std::int64_t sample = 0; sample < batch; ++sample) {
            const std::int64_t at = sample * features;
            drop(mask, step.scalars().first_sample + sample, x + at, y + at, features);
        }
    }

    DropoutShape shape_;
    DropoutMask mask_;
};

}  // namespace

template <>
std::unique_ptr<Operation> make(const Library& /*library*/, Plans& /*plans*/, const DropoutShape& shape) {
    return std::make_unique<DropoutOperation>(shape);
}

}  // namespace finch::backend::cpu
