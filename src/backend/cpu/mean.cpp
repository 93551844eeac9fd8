#include "operations.hpp"
#include "slices.hpp"
#include "vectorised.hpp"

#include <algorithm>

namespace finch::backend::cpu {
namespace {

/// Computes the `mean` (channels) of one sample of `pixels`.
FINCH_VECTORISED void find_mean(const float* __restrict x, float* __restrict mean, std::int64_t pixels,
                                std::int64_t channels) {
    std::fill(mean, mean + channels, 0.0F);
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel, x += channels) {
        for (std::int64_t c = 0; c < channels; ++c) {
            mean[c] += x[c];
        }
    }
    const float share = 1.0F / static_cast<float>(pixels);
    for (std::int64_t c = 0; c < channels; ++c) {
        mean[c] *= share;
    }
}

FINCH_VECTORISED void spread(const float* __restrict grad_y, float* __restrict grad_x, std::int64_t pixels,
                             std::int64_t channels) {
    const float share = 1.0F / static_cast<float>(pixels);
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel, grad_x += channels) {
        for (std::int64_t c = 0; c < channels; ++c) {
            grad_x[c] = share * grad_y[c];
        }
    }
}

class MeanOperation : public Operation {
public:
    explicit MeanOperation(const MeanShape& shape) : shape_(shape) {}

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        for_samples([&](std::int64_t of_x, std::int64_t of_y) {
            find_mean(x[0] + of_x, y + of_y, shape_.pixels, shape_.channels);
        });
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        for_samples([&](std::int64_t of_x, std::int64_t of_y) {
            spread(grad_y + of_y, grad_x[0] + of_x, shape_.pixels, shape_.channels);
        });
    }
    [[nodiscard]] std::string implementation() const override { return "finch:loop"; }

private:
    /// Calls `work(offset in x, offset in y)` for each sample.
    template <class Work>
    void for_samples(Work work) const {
        for_slices(shape_.batch, 1, [&](std::size_t /*slice*/, std::int64_t begin, std::int64_t end) {
            for (std::int64_t sample = begin; sample < end; ++sample) {
                work(sample * shape_.pixels * shape_.channels, sample * shape_.channels);
            }
        });
    }

    MeanShape shape_;
};

}  // namespace

template <>
std::unique_ptr<Operation> make(const Library& /*library*/, Plans& /*plans*/, const MeanShape& shape) {
    return std::make_unique<MeanOperation>(shape);
}

}  // namespace finch::backend::cpu
