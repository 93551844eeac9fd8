#include "finch/backend/dropout_mask.hpp"

#include "grid.hpp"
#include "kernel_launch.hpp"
#include "kernels/elementwise.hpp"
#include "operations.hpp"
#include "step_context.hpp"
#include "step_row.hpp"

#include <cstdint>

namespace finch::backend::cuda {
namespace {

/// The kernel that multiplies x (batch, features) by the dropout mask of the current step. Each thread processes four
/// values of a sample, for which it needs the four words of one random block.
struct Dropout {
    static constexpr int max_threads = 256;
    const StepState* state;
    DropoutMask mask;  ///< the mask without its key
    const float* x;
    float* y;
    std::int64_t batch;
    std::int64_t features;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        DropoutMask present = mask;
        present.key = state->current.random_key;
        const std::int64_t first = state->current.first_sample;
        const std::int64_t blocks = (features + 3) / 4;  // of a sample
        for (std::int64_t i = thread.global_index(); i < batch * blocks; i += thread.global_count()) {
            const std::int64_t sample = i / blocks;
            const std::int64_t block = i - sample * blocks;
            const PhiloxCounter words = present.words(first + sample, static_cast<std::uint32_t>(block));
            const std::int64_t at = sample * features;
            FINCH_UNROLL for (int k = 0; k < 4; ++k) {
                const std::int64_t feature = 4 * block + k;
                if (feature < features) {
                    y[at + feature] = x[at + feature] * present.factor(words.word[k]);
                }
            }
        }
    }
};

class DropoutOperation : public Operation {
public:
    DropoutOperation(Stream& stream, const DropoutShape& shape)
        : stream_(stream.get()), shape_(shape), mask_(dropout_mask(shape.rate, shape.layer)) {}

    void forward(const Pass& pass, std::span<const float* const> x, float* y) override {
        if (pass.mode == Mode::training) {
            drop(pass, x[0], y);
        } else {
            // A kernel instead of cudaMemcpyAsync: gangs repeat only Finch's own kernels.
            const std::int64_t count = shape_.batch * shape_.features;
            FINCH_CUDA(
                launch(stream_, grid_for(count),
                       ElementwiseForward<float>{
                           .activation = Activation::none, .x = x[0], .other = nullptr, .y = y, .count = count}));
        }
    }
    void backward(const Pass& pass, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        drop(pass, grad_y, grad_x[0]);
    }
    [[nodiscard]] std::string implementation() const override { return "finch:dropout"; }

private:
    void drop(const Pass& pass, const float* x, float* y) const {
        FINCH_CUDA(launch(stream_, grid_for(shape_.batch * groups_of(shape_.features, 4)),
                          Dropout{.state = own(pass.step).view().state,
                                  .mask = mask_,
                                  .x = x,
                                  .y = y,
                                  .batch = shape_.batch,
                                  .features = shape_.features}));
    }

    cudaStream_t stream_;
    DropoutShape shape_;
    DropoutMask mask_;
};

}  // namespace

template <>
std::unique_ptr<Operation> make(Stream& stream, const DropoutShape& shape) {
    return std::make_unique<DropoutOperation>(stream, shape);
}

}  // namespace finch::backend::cuda
