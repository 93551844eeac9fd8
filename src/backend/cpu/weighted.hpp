#pragma once

#include "convolution_gradient.hpp"
#include "library.hpp"
#include "winograd.hpp"

#include <optional>
#include <string>
#include <vector>

namespace finch::backend::cpu {

/// The plan of an operation with weights and a bias: a convolution or a linear layer. oneDNN chooses how the weights
/// lie in each of the three passes; the canonical, plain form lies in the arenas.
struct WeightedPlan {
    dnnl::primitive forward;
    std::optional<dnnl::primitive> backward_data;  ///< nothing if the gradient of x is not needed, or Finch's own is
    dnnl::primitive backward_weights;
    /// Finch's own in their places, where those are faster.
    std::optional<WinogradConvolution> own_forward, own_backward_data;
    std::optional<ConvolutionGradient> own_backward_weights;

    dnnl::memory::desc x, y, bias;
    bool rounds = false;                     ///< whether the products read copies in bfloat16
    dnnl::memory::desc read_x, read_grad_y;  ///< what they read: x and the gradient of y, or these copies
    dnnl::memory::desc plain_weights;        ///< canonical
    dnnl::memory::desc forward_weights, data_weights, weights_gradient;  ///< oneDNN's own
    std::optional<Reorder> to_forward, to_data, to_plain;                ///< nothing if both are alike

    Activation activation = Activation::none;
    std::size_t weights = 0;  ///< floats, canonical
    std::size_t inputs = 0;   ///< floats of x
    std::size_t outputs = 0;  ///< floats of y
    std::string implementation;

    /// Sets what the products read, once x and y are known.
    void set_operands(bool in_bfloat16);
    /// Sets the copies of the weights and of their gradient, once the layouts are known.
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
    /// x as the products read it.
    [[nodiscard]] dnnl::memory read_x(const float* x) const;
    /// The gradient before the activation, as the products read it; `grad_y` may become it.
    [[nodiscard]] dnnl::memory read_grad_y(const float* y, float* grad_y) const;
    /// By oneDNN; `grad_y` before the activation.
    void backward_weights(const float* x, const dnnl::memory& grad_y, float* grad_parameters);

    const Library& library_;
    Scratch& scratch_;
    std::shared_ptr<const WeightedPlan> plan_;
    dnnl::memory forward_weights_;
    dnnl::memory data_weights_;
    dnnl::memory weights_gradient_;
    std::vector<float> own_forward_weights_, own_data_weights_;
    const float* parameters_ = nullptr;  ///< canonical; the bias is read where it lies
};

}  // namespace finch::backend::cpu
