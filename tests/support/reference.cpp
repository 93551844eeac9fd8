#include "support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace finch::reference {
namespace {

using namespace backend;

std::size_t at(std::int64_t place) {
    return static_cast<std::size_t>(place);
}

/// The place of (n, row, column, channel) in a tensor (N, height, width, channels).
std::size_t nhwc(std::int64_t n, std::int64_t row, std::int64_t column, std::int64_t channel, std::int64_t height,
                 std::int64_t width, std::int64_t channels) {
    return at(((n * height + row) * width + column) * channels + channel);
}

Tensor before_activation(Activation activation, const Tensor& y, const Tensor& grad_y) {
    Tensor result(grad_y);
    for (std::size_t i = 0; i < y.size(); ++i) {
        result[i] *= slope(activation, y[i]);
    }
    return result;
}

void activate_all(Activation activation, Tensor& y) {
    for (double& value : y) {
        value = activate(activation, value);
    }
}

/// Calls visit(place in y, place in x, place in the weights) for every product that the convolution sums.
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

/// Likewise for a linear layer, whose weights' columns run over channel, row, column.
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
/// Outputs over which one bias each is spread, innermost.
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

/// Calls visit(place in y, places in x that lie in its window, padding left out).
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

namespace {

/// (x − mean) / deviation of each sample, and the deviations.
struct NormalisedSamples {
    Tensor values, deviations;
};

NormalisedSamples normalise_samples(const LayerNormShape& s, const Tensor& x) {
    const std::size_t size = at(s.pixels * s.channels);
    NormalisedSamples result{x, Tensor(at(s.batch))};
    for (std::size_t sample = 0; sample < at(s.batch); ++sample) {
        double mean = 0;
        double variance = 0;
        for (std::size_t i = 0; i < size; ++i) {
            mean += x[sample * size + i] / static_cast<double>(size);
        }
        for (std::size_t i = 0; i < size; ++i) {
            variance += std::pow(x[sample * size + i] - mean, 2) / static_cast<double>(size);
        }
        result.deviations[sample] = std::sqrt(variance + s.epsilon);
        for (std::size_t i = 0; i < size; ++i) {
            result.values[sample * size + i] = (x[sample * size + i] - mean) / result.deviations[sample];
        }
    }
    return result;
}

}  // namespace

Tensor forward(const LayerNormShape& shape, const Tensor& x, const Tensor& parameters) {
    Tensor y = normalise_samples(shape, x).values;
    for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t c = i % at(shape.channels);
        y[i] = y[i] * parameters[c] + parameters[at(shape.channels) + c];
    }
    return y;
}

/// With h the normalised values and g the gradient of them: grad_x = (g − mean(g) − h · mean(g · h)) / deviation.
Gradients backward(const LayerNormShape& shape, const Tensor& x, const Tensor& parameters, const Tensor&,
                   const Tensor& grad_y) {
    const std::size_t channels = at(shape.channels);
    const std::size_t size = at(shape.pixels) * channels;
    const auto [normalised, deviations] = normalise_samples(shape, x);
    Gradients result{Tensor(x.size()), Tensor(2 * channels)};
    Tensor means(at(shape.batch));
    Tensor products(at(shape.batch));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double grad = grad_y[i] * parameters[i % channels];
        means[i / size] += grad / static_cast<double>(size);
        products[i / size] += grad * normalised[i] / static_cast<double>(size);
        result.parameters[i % channels] += grad_y[i] * normalised[i];
        result.parameters[channels + i % channels] += grad_y[i];
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double grad = grad_y[i] * parameters[i % channels];
        result.x[i] = (grad - means[i / size] - normalised[i] * products[i / size]) / deviations[i / size];
    }
    return result;
}

namespace {

/// Mean and variance (divided by n) of each channel.
struct Statistics {
    Tensor mean, variance;
};

Statistics statistics_of(const BatchNormShape& s, const Tensor& x) {
    const std::size_t channels = at(s.channels);
    const double n = static_cast<double>(x.size() / channels);
    Statistics result{Tensor(channels), Tensor(channels)};
    for (std::size_t i = 0; i < x.size(); ++i) {
        result.mean[i % channels] += x[i] / n;
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double apart = x[i] - result.mean[i % channels];
        result.variance[i % channels] += apart * apart / n;
    }
    return result;
}

Tensor normalised(const BatchNormShape& s, const Tensor& x, const Statistics& by) {
    Tensor result(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t c = i % at(s.channels);
        result[i] = (x[i] - by.mean[c]) / std::sqrt(by.variance[c] + s.epsilon);
    }
    return result;
}

Tensor scaled(const BatchNormShape& s, Tensor x, const Tensor& parameters) {
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t c = i % at(s.channels);
        x[i] = x[i] * parameters[c] + parameters[at(s.channels) + c];
    }
    activate_all(s.activation, x);
    return x;
}

}  // namespace

Tensor forward(const BatchNormShape& shape, const Tensor& x, const Tensor& parameters, Tensor* running) {
    const Statistics batch = statistics_of(shape, x);
    const std::size_t channels = at(shape.channels);
    const double n = static_cast<double>(x.size() / channels);
    for (std::size_t c = 0; running != nullptr && c < channels; ++c) {
        double& mean = (*running)[c];
        double& variance = (*running)[channels + c];
        mean += shape.momentum * (batch.mean[c] - mean);
        variance += shape.momentum * (batch.variance[c] * n / (n - 1) - variance);
    }
    return scaled(shape, normalised(shape, x, batch), parameters);
}

Tensor normalise(const BatchNormShape& shape, const Tensor& x, const Tensor& parameters, const Tensor& running) {
    const auto middle = running.begin() + static_cast<std::ptrdiff_t>(shape.channels);
    return scaled(shape, normalised(shape, x, {Tensor(running.begin(), middle), Tensor(middle, running.end())}),
                  parameters);
}

/// By the chain rule through mean and variance, each written out.
Gradients backward(const BatchNormShape& shape, const Tensor& x, const Tensor& parameters, const Tensor& y,
                   const Tensor& grad_y) {
    const std::size_t channels = at(shape.channels);
    const double n = static_cast<double>(x.size() / channels);
    const Statistics batch = statistics_of(shape, x);
    const Tensor hat = normalised(shape, x, batch);
    const Tensor grad = before_activation(shape.activation, y, grad_y);
    Gradients result{Tensor(x.size()), Tensor(2 * channels)};
    Tensor of_variance(channels);
    Tensor of_mean(channels);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t c = i % channels;
        const double deviation = std::sqrt(batch.variance[c] + shape.epsilon);
        const double of_hat = grad[i] * parameters[c];
        result.parameters[c] += grad[i] * hat[i];
        result.parameters[channels + c] += grad[i];
        of_variance[c] += of_hat * (x[i] - batch.mean[c]) * -0.5 / (deviation * deviation * deviation);
        of_mean[c] -= of_hat / deviation;
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t c = i % channels;
        result.x[i] = grad[i] * parameters[c] / std::sqrt(batch.variance[c] + shape.epsilon) +
                      of_variance[c] * 2 * (x[i] - batch.mean[c]) / n + of_mean[c] / n;
    }
    return result;
}

namespace {

/// exp(logit) / Σ exp(logits) of one row.
Tensor softmax(const double* logits, std::size_t classes) {
    const double top = *std::max_element(logits, logits + classes);
    Tensor result(classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
        sum += result[c] = std::exp(logits[c] - top);
    }
    for (double& value : result) {
        value /= sum;
    }
    return result;
}

}  // namespace

namespace {

double target(std::size_t c, std::int32_t label, std::int64_t classes, double smoothing) {
    return (c == at(label) ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
}

}  // namespace

double cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels, std::span<const float> weights,
                     std::int64_t classes, double smoothing) {
    double loss = 0;
    for (std::size_t n = 0; n < labels.size(); ++n) {
        const Tensor p = softmax(logits.data() + n * at(classes), at(classes));
        for (std::size_t c = 0; c < p.size(); ++c) {
            loss -= static_cast<double>(weights[n]) * target(c, labels[n], classes, smoothing) * std::log(p[c]);
        }
    }
    return loss;
}

Tensor cross_entropy_gradient(const Tensor& logits, std::span<const std::int32_t> labels,
                              std::span<const float> weights, std::int64_t classes, double smoothing) {
    Tensor grad;
    for (std::size_t n = 0; n < labels.size(); ++n) {
        const Tensor p = softmax(logits.data() + n * at(classes), at(classes));
        for (std::size_t c = 0; c < p.size(); ++c) {
            grad.push_back((p[c] - target(c, labels[n], classes, smoothing)) * static_cast<double>(weights[n]));
        }
    }
    return grad;
}

void OptimizedParameter::update(const Sgd& sgd, double rate, int step, double grad) {
    const double g = grad + sgd.weight_decay * value;
    state_a = step == 1 ? g : sgd.momentum * state_a + g;
    value -= rate * (sgd.nesterov ? g + sgd.momentum * state_a : state_a);
}

void OptimizedParameter::update(const Adam& adam, double rate, int step, double grad) {
    const double g = grad + adam.weight_decay * value;
    state_a = adam.beta1 * state_a + (1 - adam.beta1) * g;
    state_b = adam.beta2 * state_b + (1 - adam.beta2) * g * g;
    const double m = state_a / (1 - std::pow(adam.beta1, step));
    const double v = state_b / (1 - std::pow(adam.beta2, step));
    value -= rate * m / (std::sqrt(v) + adam.epsilon);
}

void OptimizedParameter::update(const AdamW& adam, double rate, int step, double grad) {
    value -= rate * adam.weight_decay * value;
    update(Adam{adam.beta1, adam.beta2, adam.epsilon, 0}, rate, step, grad);
}

void OptimizedParameter::update(const Adadelta& adadelta, double rate, int /*step*/, double grad) {
    const double g = grad + adadelta.weight_decay * value;
    state_a = adadelta.rho * state_a + (1 - adadelta.rho) * g * g;
    const double change = std::sqrt(state_b + adadelta.epsilon) / std::sqrt(state_a + adadelta.epsilon) * g;
    state_b = adadelta.rho * state_b + (1 - adadelta.rho) * change * change;
    value -= rate * change;
}

}  // namespace finch::reference
