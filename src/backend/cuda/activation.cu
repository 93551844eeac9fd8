#include "kernels/activation.hpp"
#include "operations.hpp"

#include <algorithm>

namespace finch::backend::cuda {
namespace {

class ActivationOperation : public Operation {
public:
    ActivationOperation(Stream& stream, const ActivationShape& shape) : stream_(stream.get()), shape_(shape) {
        grid_.blocks_x = std::clamp<std::int64_t>((shape.count + grid_.threads - 1) / grid_.threads, 1, 1 << 16);
    }
    void pack(const float*) override {}
    void forward(const float* x, float* y) override {
        FINCH_CUDA(launch(stream_, grid_,
                          ActivationForward{.activation = shape_.activation, .x = x, .y = y, .count = shape_.count}));
    }
    void backward(const float*, const float* y, float* grad_y, float* grad_x, float*) override {
        FINCH_CUDA(launch(
            stream_, grid_,
            ActivationBackward{
                .activation = shape_.activation, .y = y, .grad_y = grad_y, .grad_x = grad_x, .count = shape_.count}));
    }
    [[nodiscard]] std::string implementation() const override { return "finch:activation"; }

private:
    cudaStream_t stream_;
    ActivationShape shape_;
    Grid grid_;
};

}  // namespace

std::unique_ptr<Operation> make_activation(Stream& stream, const ActivationShape& shape) {
    return std::make_unique<ActivationOperation>(stream, shape);
}

}  // namespace finch::backend::cuda
