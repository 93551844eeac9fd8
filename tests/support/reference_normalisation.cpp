// Reference implementations of the normalisations, see reference.hpp.
#include "support/reference_parts.hpp"

#include <cmath>

namespace finch::reference {

using namespace backend;

namespace {

/// The normalised values (x − mean) / deviation of each sample, and the deviations.
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

/// Computes grad_x = (g − mean(g) − h · mean(g · h)) / deviation. h: normalised values, g: their gradient.
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

/// The mean and the variance (divided by n) of each channel.
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

/// Applies the chain rule to the mean and the variance explicitly.
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

}  // namespace finch::reference
