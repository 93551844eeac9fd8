#pragma once

#include "support/reference.hpp"

#include <cstddef>

// Shared functions of the reference implementations.
namespace finch::reference {

inline std::size_t at(std::int64_t place) {
    return static_cast<std::size_t>(place);
}

/// Returns grad_y times the derivative of the activation. `y` is its output, or its input if needs_its_input().
inline Tensor before_activation(backend::Activation activation, const Tensor& y, const Tensor& grad_y) {
    Tensor result(grad_y);
    for (std::size_t i = 0; i < y.size(); ++i) {
        result[i] *= slope(activation, y[i]);
    }
    return result;
}

inline void activate_all(backend::Activation activation, Tensor& y) {
    for (double& value : y) {
        value = activate(activation, value);
    }
}

}  // namespace finch::reference
