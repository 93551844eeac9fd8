#pragma once

#include "finch/backend/device.hpp"

#include <cstddef>
#include <memory>

// What needs no oneDNN and goes from number to number.
namespace finch::backend::cpu {

/// An activation by itself whose derivative is taken at its output.
[[nodiscard]] std::unique_ptr<Operation> make_activation_loop(const ActivationShape& shape);

/// y = f(x), `count` floats; y may be x. Neither of these two takes an activation that needs its input.
void apply_activation(Activation activation, const float* x, float* y, std::size_t count);
/// grad_y becomes the gradient before the activation, given y after it. In place; `count` floats.
void apply_derivative(Activation activation, const float* y, float* grad_y, std::size_t count);
/// `to` += `from`.
void accumulate(const float* from, float* to, std::size_t count);

/// `grads` times `inverse`; whether they were all finite.
[[nodiscard]] bool unscale(float* grads, float inverse, std::size_t count);
void clip_norm(float* grads, std::size_t count, double most);
void optimizer_step(const Optimizer& optimizer, const OptimizerScalars& scalars, float* parameters, const float* grads,
                    float* state_a, float* state_b, std::size_t count);
void average(const float* values, float* averages, float share, std::size_t count);

}  // namespace finch::backend::cpu
