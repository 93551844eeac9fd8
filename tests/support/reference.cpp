#include "support/reference_parts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace finch::reference {
namespace {

using namespace backend;

/// Returns the index of (n, row, column, channel) in a tensor (N, height, width, channels).
std::size_t nhwc(std::int64_t n, std::int64_t row, std::int64_t column, std::int64_t channel, std::int64_t height,
                 std::int64_t width, std::int64_t channels) {
    return at(((n * height + row) * width + column) * channels + channel);
}

/// Calls visit(index in y, index in x, index in the weights) for every product in the convolution's sums.
template <class Visit>
void each_product(const ConvolutionShape& s, Visit visit) {
    for (std::int64_t n = 0; n < s.batch; ++n)
        for (std::int64_t i = 0; i < s.height_out(); ++i)
            for (std::int64_t j = 0; j < s.width_out(); ++j)
                for (std::int64_t o = 0; o < s.channels_out; ++o)
                    for (std::int64_t c = 0; c < s.channels_in / s.groups; ++c)
                        for (std::int64_t a = 0; a < s.kernel; ++a)
                            for (std::int64_t b = 0; b < s.kernel; ++b) {
                                const std::int64_t row = i * s.stride - s.padding_before + a * s.dilation;
                                const std::int64_t column = j * s.stride - s.padding_before + b * s.dilation;
                                if (row < 0 || row >= s.height || column < 0 || column >= s.width) {
                                    continue;
                                }
                                visit(nhwc(n, i, j, o, s.height_out(), s.width_out(), s.channels_out),
                                      nhwc(n, row, column,
                                           o / (s.channels_out / s.groups) * (s.channels_in / s.groups) + c, s.height,
                                           s.width, s.channels_in),
                                      at(((o * (s.channels_in / s.groups) + c) * s.kernel + a) * s.kernel + b));
                            }
}

/// Calls visit() for every product of a linear layer. The columns of its weights are in the order channel, row, column.
template <class Visit>
void each_product(const LinearShape& s, Visit visit) {
    for (std::int64_t n = 0; n < s.batch; ++n)
        for (std::int64_t u = 0; u < s.units; ++u)
            for (std::int64_t c = 0; c < s.channels; ++c)
                for (std::int64_t i = 0; i < s.height; ++i)
                    for (std::int64_t j = 0; j < s.width; ++j)
                        visit(at(n * s.units + u), nhwc(n, i, j, c, s.height, s.width, s.channels),
                              at(((u * s.channels + c) * s.height + i) * s.width + j));
}

std::size_t weights_of(const ConvolutionShape& s) {
    return at(s.weights());
}
std::size_t weights_of(const LinearShape& s) {
    return at(s.units * s.channels * s.height * s.width);
}
/// Returns the number of biases: the size of the innermost dimension of y.
std::size_t biases_of(const ConvolutionShape& s) {
    return at(s.channels_out);
}
std::size_t biases_of(const LinearShape& s) {
    return at(s.units);
}
std::size_t outputs_of(const ConvolutionShape& s) {
    return at(s.batch * s.height_out() * s.width_out() * s.channels_out);
}
std::size_t outputs_of(const LinearShape& s) {
    return at(s.batch * s.units);
}

template <class Shape>
Tensor weighted_forward(const Shape& shape, const Tensor& x, const Tensor& parameters) {
    Tensor y(outputs_of(shape));
    for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] = parameters[weights_of(shape) + i % biases_of(shape)];
    }
    each_product(shape, [&](std::size_t to, std::size_t from, std::size_t w) { y[to] += x[from] * parameters[w]; });
    activate_all(shape.activation, y);
    return y;
}

template <class Shape>
Gradients weighted_backward(const Shape& shape, const Tensor& x, const Tensor& parameters, const Tensor& y,
                            const Tensor& grad_y) {
    const Tensor grad = before_activation(shape.activation, y, grad_y);
    Gradients result{Tensor(x.size()), Tensor(parameters.size())};
    for (std::size_t i = 0; i < grad.size(); ++i) {
        result.parameters[weights_of(shape) + i % biases_of(shape)] += grad[i];
    }
    each_product(shape, [&](std::size_t to, std::size_t from, std::size_t w) {
        result.x[from] += grad[to] * parameters[w];
        result.parameters[w] += grad[to] * x[from];
    });
    return result;
}

/// Calls visit(index in y, indices in x) for every window. The indices exclude padding.
template <class Visit>
void each_window(const PoolingShape& s, Visit visit) {
    std::vector<std::size_t> window;
    for (std::int64_t n = 0; n < s.batch; ++n)
        for (std::int64_t i = 0; i < s.height_out(); ++i)
            for (std::int64_t j = 0; j < s.width_out(); ++j)
                for (std::int64_t c = 0; c < s.channels; ++c) {
                    window.clear();
                    for (std::int64_t row = i * s.stride - s.padding; row < i * s.stride - s.padding + s.kernel; ++row)
                        for (std::int64_t column = j * s.stride - s.padding;
                             column < j * s.stride - s.padding + s.kernel; ++column)
                            if (row >= 0 && row < s.height && column >= 0 && column < s.width) {
                                window.push_back(nhwc(n, row, column, c, s.height, s.width, s.channels));
                            }
                    visit(nhwc(n, i, j, c, s.height_out(), s.width_out(), s.channels), window);
                }
}

std::size_t largest(const Tensor& x, const std::vector<std::size_t>& window) {
    return *std::max_element(window.begin(), window.end(),
                             [&](std::size_t left, std::size_t right) { return x[left] < x[right]; });
}

}  // namespace

double activate(Activation activation, double value) {
    switch (activation) {
        case Activation::none:
            return value;
        case Activation::relu:
            return std::max(value, 0.0);
        case Activation::sigmoid:
            return 1 / (1 + std::exp(-value));
        case Activation::tanh:
            return std::tanh(value);
        case Activation::leaky_relu:
            return value > 0 ? value : static_cast<double>(leaky_slope) * value;
        case Activation::gelu:
            return value * std::erfc(-value / std::numbers::sqrt2) / 2;
        case Activation::silu:
            return value / (1 + std::exp(-value));
    }
    return std::numeric_limits<double>::quiet_NaN();
}

double slope(Activation activation, double y) {
    switch (activation) {
        case Activation::none:
            return 1;
        case Activation::relu:
            return y > 0 ? 1 : 0;
        case Activation::sigmoid:
            return y * (1 - y);
        case Activation::tanh:
            return 1 - y * y;
        case Activation::leaky_relu:
            return y > 0 ? 1 : static_cast<double>(leaky_slope);
        case Activation::gelu:
            return std::erfc(-y / std::numbers::sqrt2) / 2 + y * std::exp(-y * y / 2) / std::sqrt(2 * std::numbers::pi);
        case Activation::silu: {
            const double share = 1 / (1 + std::exp(-y));
            return share * (1 + y * (1 - share));
        }
    }
    return std::numeric_limits<double>::quiet_NaN();
}

Tensor forward(const ConvolutionShape& shape, const Tensor& x, const Tensor& parameters) {
    return weighted_forward(shape, x, parameters);
}
Tensor forward(const LinearShape& shape, const Tensor& x, const Tensor& parameters) {
    return weighted_forward(shape, x, parameters);
}
Gradients backward(const ConvolutionShape& shape, const Tensor& x, const Tensor& parameters, const Tensor& y,
                   const Tensor& grad_y) {
    return weighted_backward(shape, x, parameters, y, grad_y);
}
Gradients backward(const LinearShape& shape, const Tensor& x, const Tensor& parameters, const Tensor& y,
                   const Tensor& grad_y) {
    return weighted_backward(shape, x, parameters, y, grad_y);
}

Tensor forward(const PoolingShape& shape, const Tensor& x, const Tensor&) {
    Tensor y(at(shape.batch * shape.height_out() * shape.width_out() * shape.channels));
    each_window(shape, [&](std::size_t to, const std::vector<std::size_t>& window) {
        if (shape.kind == Pooling::max) {
            y[to] = x[largest(x, window)];
        } else {
            for (const std::size_t from : window) {
                y[to] += x[from] / static_cast<double>(shape.kernel * shape.kernel);
            }
        }
    });
    return y;
}

Gradients backward(const PoolingShape& shape, const Tensor& x, const Tensor&, const Tensor&, const Tensor& grad_y) {
    Gradients result{Tensor(x.size()), {}};
    each_window(shape, [&](std::size_t to, const std::vector<std::size_t>& window) {
        if (shape.kind == Pooling::max) {
            result.x[largest(x, window)] += grad_y[to];
        } else {
            for (const std::size_t from : window) {
                result.x[from] += grad_y[to] / static_cast<double>(shape.kernel * shape.kernel);
            }
        }
    });
    return result;
}

Tensor forward(const ActivationShape& shape, const Tensor& x, const Tensor&) {
    Tensor y(x);
    activate_all(shape.activation, y);
    return y;
}
Gradients backward(const ActivationShape& shape, const Tensor& x, const Tensor&, const Tensor& y,
                   const Tensor& grad_y) {
    return {before_activation(shape.activation, needs_its_input(shape.activation) ? x : y, grad_y), {}};
}

Tensor forward(const MeanShape& shape, const Tensor& x, const Tensor&) {
    Tensor y(at(shape.batch * shape.channels));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t sample = i / at(shape.pixels * shape.channels);
        y[sample * at(shape.channels) + i % at(shape.channels)] += x[i] / static_cast<double>(shape.pixels);
    }
    return y;
}
Gradients backward(const MeanShape& shape, const Tensor& x, const Tensor&, const Tensor&, const Tensor& grad_y) {
    Gradients result{Tensor(x.size()), {}};
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t sample = i / at(shape.pixels * shape.channels);
        result.x[i] = grad_y[sample * at(shape.channels) + i % at(shape.channels)] / static_cast<double>(shape.pixels);
    }
    return result;
}

}  // namespace finch::reference
