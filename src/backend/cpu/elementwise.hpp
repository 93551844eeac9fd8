#pragma once

#include "finch/backend/device.hpp"

#include <cstddef>
#include <memory>

// Elementwise loops that do not use oneDNN.
namespace finch::backend::cpu {

/// Returns an activation as a separate operation. The activation's derivative must be a function of its output.
[[nodiscard]] std::unique_ptr<Operation> make_activation_loop(const ActivationShape& shape);

/// Computes y = f(x) for `count` floats; y may be x. apply_activation() and apply_derivative() do not accept an
/// activation that needs its input.
void apply_activation(Activation activation, const float* x, float* y, std::size_t count);
/// Replaces grad_y with the gradient before the activation. `y` is the activation's output. `y` and `grad_y` have
/// `count` floats.
void apply_derivative(Activation activation, const float* y, float* grad_y, std::size_t count);
/// Adds `from` to `to`.
void accumulate(const float* from, float* to, std::size_t count);

/// Multiplies `grads` by `inverse`. Returns true if all gradients were finite.
[[nodiscard]] bool unscale(float* grads, float inverse, std::size_t count);
void clip_norm(float* grads, std::size_t count, double most);
void optimizer_step(const Optimizer& optimizer, const OptimizerScalars& scalars, float* parameters, const float* grads,
                    float* state_a, float* state_b, std::size_t count);
void average(const float* values, float* averages, float share, std::size_t count);

}  // namespace finch::backend::cpu
