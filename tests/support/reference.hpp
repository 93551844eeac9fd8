#pragma once

#include "finch/backend/operation.hpp"
#include "finch/backend/optimizer.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// The oracle of every backend: each operation in double precision by its definition, in plain loops. Layouts and
/// parameters are those of finch/backend/operation.hpp.
namespace finch::reference {

using Tensor = std::vector<double>;

/// The gradients of an operation's input and of its parameters (empty where it has none).
struct Gradients {
    Tensor x;
    Tensor parameters;
};

[[nodiscard]] double activate(backend::Activation activation, double value);
/// The derivative at the place where the activation gives `y`; where needs_its_input(), `y` is the input.
[[nodiscard]] double slope(backend::Activation activation, double y);

[[nodiscard]] Tensor forward(const backend::ConvolutionShape& shape, const Tensor& x, const Tensor& parameters);
[[nodiscard]] Tensor forward(const backend::PoolingShape& shape, const Tensor& x, const Tensor& parameters);
[[nodiscard]] Tensor forward(const backend::LinearShape& shape, const Tensor& x, const Tensor& parameters);
[[nodiscard]] Tensor forward(const backend::ActivationShape& shape, const Tensor& x, const Tensor& parameters);
[[nodiscard]] Tensor forward(const backend::MeanShape& shape, const Tensor& x, const Tensor& parameters);
[[nodiscard]] Tensor forward(const backend::LayerNormShape& shape, const Tensor& x, const Tensor& parameters);

/// `y` is what forward gave for `x`; `grad_y` the gradient of it.
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

/// Batch normalisation of all rows of x in training; `parameters`: weight, then bias. `running` (mean, then variance)
/// follows, where it is given.
[[nodiscard]] Tensor forward(const backend::BatchNormShape& shape, const Tensor& x, const Tensor& parameters,
                             Tensor* running = nullptr);
[[nodiscard]] Gradients backward(const backend::BatchNormShape& shape, const Tensor& x, const Tensor& parameters,
                                 const Tensor& y, const Tensor& grad_y);
/// In validation.
[[nodiscard]] Tensor normalise(const backend::BatchNormShape& shape, const Tensor& x, const Tensor& parameters,
                               const Tensor& running);

/// The sum over samples of weight · −Σ target · log softmax(logits); `logits` (N, classes). `smoothing`: the share of a
/// target that all classes get alike.
[[nodiscard]] double cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels,
                                   std::span<const float> weights, std::int64_t classes, double smoothing = 0);
/// Its gradient.
[[nodiscard]] Tensor cross_entropy_gradient(const Tensor& logits, std::span<const std::int32_t> labels,
                                            std::span<const float> weights, std::int64_t classes, double smoothing = 0);

/// One parameter under an optimizer: the formulas of PyTorch's documentation (torch.optim.SGD, Adam, AdamW, Adadelta).
struct OptimizedParameter {
    double value = 0;
    double state_a = 0;
    double state_b = 0;

    /// `step`: 1 is the first.
    void update(const backend::Sgd& sgd, double rate, int step, double grad);
    void update(const backend::Adam& adam, double rate, int step, double grad);
    void update(const backend::AdamW& adam, double rate, int step, double grad);
    void update(const backend::Adadelta& adadelta, double rate, int step, double grad);
};

}  // namespace finch::reference
