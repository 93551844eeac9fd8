#include "grid.hpp"
#include "kernels/elementwise.hpp"
#include "number_of.hpp"
#include "operations.hpp"

#include <utility>

namespace finch::backend::cuda {
namespace {

/// An activation of one input, or of the sum of two inputs.
template <class Number>
class ElementwiseOperation : public Operation {
public:
    ElementwiseOperation(Stream& stream, Activation activation, std::int64_t count, std::string implementation)
        : stream_(stream.get()), activation_(activation), count_(count), implementation_(std::move(implementation)) {}

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        FINCH_CUDA(launch(stream_, grid_for(count_ / width_of<Number>),
                          ElementwiseForward<Number>{.activation = activation_,
                                                     .x = numbers(x[0]),
                                                     .other = x.size() == 2 ? numbers(x[1]) : nullptr,
                                                     .y = numbers(y),
                                                     .count = count_}));
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        FINCH_CUDA(launch(stream_, grid_for(count_ / width_of<Number>),
                          ElementwiseBackward<Number>{.activation = activation_,
                                                      .at = numbers(needs_its_input(activation_) ? x[0] : y),
                                                      .grad_y = numbers(grad_y),
                                                      .grad_x = numbers(grad_x[0]),
                                                      .grad_other = grad_x.size() == 2 ? numbers(grad_x[1]) : nullptr,
                                                      .count = count_}));
    }
    [[nodiscard]] std::string implementation() const override { return implementation_; }

private:
    [[nodiscard]] static const Number* numbers(const float* x) { return reinterpret_cast<const Number*>(x); }
    [[nodiscard]] static Number* numbers(float* x) { return reinterpret_cast<Number*>(x); }

    cudaStream_t stream_;
    Activation activation_;
    std::int64_t count_;
    std::string implementation_;
};

std::unique_ptr<Operation> make_elementwise(Stream& stream, const auto& shape, const char* implementation) {
    return with_number(shape.x_type, [&](auto number) -> std::unique_ptr<Operation> {
        return std::make_unique<ElementwiseOperation<typename decltype(number)::type>>(stream, shape.activation,
                                                                                       shape.count, implementation);
    });
}

}  // namespace

void accumulate(cudaStream_t stream, const float* from, float* to, std::int64_t count, TensorType type) {
    with_number(type, [&](auto number) {
        using Number = typename decltype(number)::type;
        FINCH_CUDA(launch(stream, grid_for(count / width_of<Number>),
                          ElementwiseForward<Number>{.activation = Activation::none,
                                                     .x = reinterpret_cast<Number*>(to),
                                                     .other = reinterpret_cast<const Number*>(from),
                                                     .y = reinterpret_cast<Number*>(to),
                                                     .count = count}));
    });
}

template <>
std::unique_ptr<Operation> make(Stream& stream, const ActivationShape& shape) {
    return make_elementwise(stream, shape, "finch:activation");
}

template <>
std::unique_ptr<Operation> make(Stream& stream, const AddShape& shape) {
    return make_elementwise(stream, shape, "finch:add");
}

}  // namespace finch::backend::cuda
