#pragma once

#include "finch/backend/operation.hpp"
#include "finch/backend/optimizer.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// Reference implementations for the tests of all backends: every operation in double precision, in simple loops that
/// follow its definition. Layouts and parameters are those of finch/backend/operation.hpp.
namespace finch::reference {

using Tensor = std::vector<double>;

/// The gradients of an operation's input and parameters. `parameters` is empty if the operation has none.
struct Gradients {
    Tensor x;
    Tensor parameters;
};

[[nodiscard]] double activate(backend::Activation activation, double value);
/// Returns the derivative of the activation. `y` is its output, or its input if needs_its_input().
[[nodiscard]] double slope(backend::Activation activation, double y);

[[nodiscard]] Tensor forward(const backend::ConvolutionShape& shape, const Tensor& x, const Tensor& parameters);
[[nodiscard]] Tensor forward(const backend::PoolingShape& shape, const Tensor& x, const Tensor& parameters);
[[nodiscard]] Tensor forward(const backend::LinearShape& shape, const Tensor& x, const Tensor& parameters);
[[nodiscard]] Tensor forward(const backend::ActivationShape& shape, const Tensor& x, const Tensor& parameters);
[[nodiscard]] Tensor forward(const backend::MeanShape& shape, const Tensor& x, const Tensor& parameters);
[[nodiscard]] Tensor forward(const backend::LayerNormShape& shape, const Tensor& x, const Tensor& parameters);

/// `y` is the result of forward() for `x`, and `grad_y` its gradient.
[[nodiscard]] Gradients backward(const backend::ConvolutionShape& shape, const Tensor& x, const Tensor& parameters,
                                 const Tensor& y, const Tensor& grad_y);
[[nodiscard]] Gradients backward(const backend::PoolingShape& shape, const Tensor& x, const Tensor& parameters,
                                 const Tensor& y, const Tensor& grad_y);
[[nodiscard]] Gradients backward(const backend::LinearShape& shape, const Tensor& x, const Tensor& parameters,
                                 const Tensor& y, const Tensor& grad_y);
[[nodiscard]] Gradients backward(const backend::ActivationShape& shape, const Tensor& x, const Tensor& parameters,
                                 const Tensor& y, const Tensor& grad_y);
[[nodiscard]] Gradients backward(const backend::MeanShape& shape, const Tensor& x, const Tensor& parameters,
                                 const Tensor& y, const Tensor& grad_y);
[[nodiscard]] Gradients backward(const backend::LayerNormShape& shape, const Tensor& x, const Tensor& parameters,
                                 const Tensor& y, const Tensor& grad_y);

/// Batch normalisation of all rows of x in training. `parameters`: weight, then bias. Updates the running statistics
/// `running` (mean, then variance) unless it is null.
[[nodiscard]] Tensor forward(const backend::BatchNormShape& shape, const Tensor& x, const Tensor& parameters,
                             Tensor* running = nullptr);
[[nodiscard]] Gradients backward(const backend::BatchNormShape& shape, const Tensor& x, const Tensor& parameters,
                                 const Tensor& y, const Tensor& grad_y);
/// Batch normalisation in validation, which uses the running statistics.
[[nodiscard]] Tensor normalise(const backend::BatchNormShape& shape, const Tensor& x, const Tensor& parameters,
                               const Tensor& running);

/// Returns the sum over samples of weight · −Σ target · log softmax(logits). `logits`: (N, classes). `smoothing`: the
/// part of a target that is distributed equally over all classes.
[[nodiscard]] double cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels,
                                   std::span<const float> weights, std::int64_t classes, double smoothing = 0);
/// Returns the gradient of cross_entropy() with respect to the logits.
[[nodiscard]] Tensor cross_entropy_gradient(const Tensor& logits, std::span<const std::int32_t> labels,
                                            std::span<const float> weights, std::int64_t classes, double smoothing = 0);

/// A parameter with its optimizer state. Uses the formulas in PyTorch's documentation (torch.optim.SGD, Adam, AdamW,
/// Adadelta).
struct OptimizedParameter {
    double value = 0;
    double state_a = 0;
    double state_b = 0;

    /// Updates the parameter. `step` counts from 1.
    void update(const backend::Sgd& sgd, double rate, int step, double grad);
    void update(const backend::Adam& adam, double rate, int step, double grad);
    void update(const backend::AdamW& adam, double rate, int step, double grad);
    void update(const backend::Adadelta& adadelta, double rate, int step, double grad);
};

}  // namespace finch::reference
