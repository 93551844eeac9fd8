#include "grid.hpp"
#include "kernels/elementwise.hpp"
#include "operations.hpp"

#include <utility>

namespace finch::backend::cuda {
namespace {

/// An activation of one input, or of the sum of two inputs.
class ElementwiseOperation : public Operation {
public:
    ElementwiseOperation(Stream& stream, Activation activation, std::int64_t count, std::string implementation)
        : stream_(stream.get()), activation_(activation), count_(count), implementation_(std::move(implementation)) {}

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        FINCH_CUDA(launch(stream_, grid_for(count_),
                          ElementwiseForward{.activation = activation_,
                                             .x = x[0],
                                             .other = x.size() == 2 ? x[1] : nullptr,
                                             .y = y,
                                             .count = count_}));
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        FINCH_CUDA(launch(stream_, grid_for(count_),
                          ElementwiseBackward{.activation = activation_,
                                              .at = needs_its_input(activation_) ? x[0] : y,
                                              .grad_y = grad_y,
                                              .grad_x = grad_x[0],
                                              .grad_other = grad_x.size() == 2 ? grad_x[1] : nullptr,
                                              .count = count_}));
    }
    [[nodiscard]] std::string implementation() const override { return implementation_; }

private:
    cudaStream_t stream_;
    Activation activation_;
    std::int64_t count_;
    std::string implementation_;
};

}  // namespace

void accumulate(cudaStream_t stream, const float* from, float* to, std::int64_t count) {
    FINCH_CUDA(
        launch(stream, grid_for(count),
               ElementwiseForward{.activation = Activation::none, .x = to, .other = from, .y = to, .count = count}));
}

template <>
std::unique_ptr<Operation> make(Stream& stream, const ActivationShape& shape) {
    return std::make_unique<ElementwiseOperation>(stream, shape.activation, shape.count, "finch:activation");
}

template <>
std::unique_ptr<Operation> make(Stream& stream, const AddShape& shape) {
    return std::make_unique<ElementwiseOperation>(stream, shape.activation, shape.count, "finch:add");
}

}  // namespace finch::backend::cuda
