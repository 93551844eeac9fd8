#include "grid.hpp"
#include "kernels/dropout.hpp"
#include "operations.hpp"
#include "step_context.hpp"

namespace finch::backend::cuda {
namespace {

class DropoutOperation : public Operation {
public:
    DropoutOperation(Stream& stream, const DropoutShape& shape)
        : stream_(stream.get()), shape_(shape), mask_(dropout_mask(shape.rate, shape.layer)) {}

    void forward(const Pass& pass, std::span<const float* const> x, float* y) override {
        if (pass.mode == Mode::training) {
            drop(pass, x[0], y);
        } else {
            FINCH_CUDA(cudaMemcpyAsync(y, x[0],
                                       static_cast<std::size_t>(shape_.batch * shape_.features) * sizeof(float),
                                       cudaMemcpyDeviceToDevice, stream_));
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
