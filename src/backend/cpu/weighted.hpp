#pragma once

#include "convolution_gradient.hpp"
#include "library.hpp"

#include <optional>
#include <string>

namespace finch::backend::cpu {

/// The plan of an operation with weights and a bias: a convolution or a linear layer. For each of the three passes,
/// oneDNN chooses the layout of the weights. The arenas hold the weights in the canonical, plain layout.
struct WeightedPlan {
    dnnl::primitive forward;
    std::optional<dnnl::primitive> backward_data;  ///< empty if the gradient of x is not needed
    dnnl::primitive backward_weights;
    std::optional<ConvolutionShape> own_gradient;  ///< of a ConvolutionGradient, used if it is faster than oneDNN

    dnnl::memory::desc x, y, bias;
    bool rounds = false;                     ///< true if the products read bfloat16 copies
    dnnl::memory::desc read_x, read_grad_y;  ///< read by the products: x and the gradient of y, or their copies
    dnnl::memory::desc plain_weights;        ///< canonical
    dnnl::memory::desc forward_weights, data_weights, weights_gradient;  ///< oneDNN's layouts
    std::optional<Reorder> to_forward, to_data, to_plain;                ///< empty if both layouts are equal

    Activation activation = Activation::none;
    std::size_t weights = 0;  ///< floats, canonical
    std::size_t inputs = 0;   ///< floats of x
    std::size_t outputs = 0;  ///< floats of y
    std::string implementation;

    /// Sets `read_x` and `read_grad_y`, the tensors that the products read. The members `x` and `y` must be set before
    /// the call.
    void set_operands(bool in_bfloat16);
    /// Returns the scratch bytes of the bfloat16 copies.
    [[nodiscard]] std::size_t copied_bytes() const noexcept;
    /// Sets the reorders of the weights and of their gradient. The layouts must be set before the call.
    void make_reorders(const Library& library);
};

/// An operation with its packed weights.
class WeightedOperation : public Operation {
public:
    WeightedOperation(const Library& library, Scratch& scratch, std::shared_ptr<const WeightedPlan> plan);
    void pack(const float* parameters, float* buffers) override;
    void forward(const Pass& pass, std::span<const float* const> x, float* y) override;
    void backward(const Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override;
    [[nodiscard]] std::string implementation() const override { return plan_->implementation; }

private:
    /// Returns x in the form that the products read.
    [[nodiscard]] dnnl::memory read_x(const float* x) const;
    /// Returns the gradient before the activation in the form that the products read. May overwrite `grad_y` with this
    /// gradient.
    [[nodiscard]] dnnl::memory read_grad_y(const float* y, float* grad_y) const;
    /// Computes the gradients of the weights and the bias by oneDNN, and adds them to those of the blocks before.
    /// `grad_y` is the gradient before the activation.
    void backward_weights(const Pass& pass, const float* x, const dnnl::memory& grad_y, float* grad_parameters);

    const Library& library_;
    Scratch& scratch_;
    std::shared_ptr<const WeightedPlan> plan_;
    dnnl::memory forward_weights_;
    dnnl::memory data_weights_;
    dnnl::memory weights_gradient_;  ///< in oneDNN's layout, summed over the blocks so far
    std::optional<ConvolutionGradient> own_gradient_;
    const float* parameters_ = nullptr;  ///< canonical; the bias is read from here
};

}  // namespace finch::backend::cpu
