#pragma once

#include "support/reference.hpp"

#include <cstddef>

// What the files of the oracle share.
namespace finch::reference {

inline std::size_t at(std::int64_t place) {
    return static_cast<std::size_t>(place);
}

/// The gradient of y · that of the activation, given y; where needs_its_input(), its input.
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
