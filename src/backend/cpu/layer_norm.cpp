#include "operations.hpp"
#include "slices.hpp"
#include "vectorised.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace finch::backend::cpu {
namespace {

struct Moments {
    double mean = 0;
    double inverse_deviation = 0;
};

/// The number of partial sums in double. The partial sums are vectorised, and their order does not depend on the
/// instruction set.
constexpr std::int64_t lanes = 8;

[[nodiscard]] double total(const double (&sums)[lanes]) {
    double all = 0;
    for (const double sum : sums) {
        all += sum;
    }
    return all;
}

FINCH_VECTORISED Moments moments_of(const float* __restrict x, std::int64_t count, double epsilon) {
    double sums[lanes] = {};
    double squares[lanes] = {};
    const std::int64_t whole = count / lanes * lanes;
    for (std::int64_t i = 0; i < whole; i += lanes) {
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
            sums[lane] += static_cast<double>(x[i + lane]);
        }
    }
    for (std::int64_t i = whole; i < count; ++i) {
        sums[i - whole] += static_cast<double>(x[i]);
    }
    const double mean = total(sums) / static_cast<double>(count);
    for (std::int64_t i = 0; i < whole; i += lanes) {
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
            const double apart = static_cast<double>(x[i + lane]) - mean;
            squares[lane] += apart * apart;
        }
    }
    for (std::int64_t i = whole; i < count; ++i) {
        const double apart = static_cast<double>(x[i]) - mean;
        squares[i - whole] += apart * apart;
    }
    return {mean, 1.0 / std::sqrt(total(squares) / static_cast<double>(count) + epsilon)};
}

/// Computes y = (x − mean) · inverse_deviation · weight + bias for one sample.
FINCH_VECTORISED void normalise(const float* __restrict x, const Moments& moments, const float* __restrict weight,
                                const float* __restrict bias, float* __restrict y, std::int64_t pixels,
                                std::int64_t channels) {
    const auto mean = static_cast<float>(moments.mean);
    const auto inverse_deviation = static_cast<float>(moments.inverse_deviation);
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel, x += channels, y += channels) {
        for (std::int64_t c = 0; c < channels; ++c) {
            y[c] = (x[c] - mean) * inverse_deviation * weight[c] + bias[c];
        }
    }
}

/// Adds over the pixels of one sample: sums[c] += Σ grad · normalised x, sums[channels + c] += Σ grad.
FINCH_VECTORISED void add_parameter_sums(const float* __restrict x, const float* __restrict grad_y,
                                         const Moments& moments, double* __restrict sums, std::int64_t pixels,
                                         std::int64_t channels) {
    const double mean = moments.mean;
    const double inverse_deviation = moments.inverse_deviation;
    double* __restrict of_bias = sums + channels;
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel, x += channels, grad_y += channels) {
        for (std::int64_t c = 0; c < channels; ++c) {
            const auto grad = static_cast<double>(grad_y[c]);
            sums[c] += grad * (static_cast<double>(x[c]) - mean) * inverse_deviation;
            of_bias[c] += grad;
        }
    }
}

/// Computes grad_x = (g − mean of g − normalised x · mean of (g · normalised x)) · inverse_deviation, where g = grad ·
/// weight. `sums` are the sums of add_parameter_sums() over this sample only.
FINCH_VECTORISED void add_input_gradient(const float* __restrict x, const float* __restrict grad_y,
                                         const Moments& moments, const float* __restrict weight,
                                         const double* __restrict sums, float* __restrict grad_x, std::int64_t pixels,
                                         std::int64_t channels) {
    double product = 0;
    double sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
        product += sums[c] * static_cast<double>(weight[c]);
        sum += sums[channels + c] * static_cast<double>(weight[c]);
    }
    const auto count = static_cast<double>(pixels * channels);
    const auto mean = static_cast<float>(moments.mean);
    const auto inverse_deviation = static_cast<float>(moments.inverse_deviation);
    const auto of_x = static_cast<float>(-product / count * moments.inverse_deviation);
    const auto shift = static_cast<float>(-sum / count);
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel, x += channels, grad_y += channels, grad_x += channels) {
        for (std::int64_t c = 0; c < channels; ++c) {
            grad_x[c] = (grad_y[c] * weight[c] + (x[c] - mean) * of_x + shift) * inverse_deviation;
        }
    }
}

class LayerNormOperation : public Operation {
public:
    explicit LayerNormOperation(const LayerNormShape& shape)
        : shape_(shape),
          moments_(static_cast<std::size_t>(shape.batch)),
          grad_sums_(static_cast<std::size_t>(2 * shape.channels)) {}

    void pack(const float* parameters, float* /*buffers*/) override { parameters_ = parameters; }

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        for_slices(shape_.batch, 1, [&](std::size_t /*slice*/, std::int64_t begin, std::int64_t end) {
            for (std::int64_t sample = begin; sample < end; ++sample) {
                Moments& moments = moments_[static_cast<std::size_t>(sample)];
                moments = moments_of(x[0] + at(sample), at(1), shape_.epsilon);
                normalise(x[0] + at(sample), moments, parameters_, parameters_ + shape_.channels, y + at(sample),
                          shape_.pixels, shape_.channels);
            }
        });
    }

    void backward(const Pass& pass, std::span<const float* const> x, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        const std::size_t size = grad_sums_.size();
        const std::vector<double> sums =
            sum_slices(shape_.batch, 1, size, [&](std::int64_t begin, std::int64_t end, double* all) {
                std::vector<double> own(size);
                for (std::int64_t sample = begin; sample < end; ++sample) {
                    const Moments& moments = moments_[static_cast<std::size_t>(sample)];
                    std::fill(own.begin(), own.end(), 0.0);
                    add_parameter_sums(x[0] + at(sample), grad_y + at(sample), moments, own.data(), shape_.pixels,
                                       shape_.channels);
                    if (grad_x[0] != nullptr) {
                        add_input_gradient(x[0] + at(sample), grad_y + at(sample), moments, parameters_, own.data(),
                                           grad_x[0] + at(sample), shape_.pixels, shape_.channels);
                    }
                    for (std::size_t i = 0; i < size; ++i) {
                        all[i] += own[i];
                    }
                }
            });
        for (std::size_t i = 0; i < size; ++i) {
            grad_sums_[i] = (pass.is_first_block ? 0 : grad_sums_[i]) + sums[i];
            grad_parameters[i] = static_cast<float>(grad_sums_[i]);
        }
    }
    [[nodiscard]] std::string implementation() const override { return "finch:loop"; }

private:
    [[nodiscard]] std::int64_t at(std::int64_t sample) const { return sample * shape_.pixels * shape_.channels; }

    LayerNormShape shape_;
    std::vector<Moments> moments_;   ///< of each sample in the last forward()
    std::vector<double> grad_sums_;  ///< gradients of the parameters, summed over the blocks so far
    const float* parameters_ = nullptr;
};

}  // namespace

template <>
std::unique_ptr<Operation> make(const Library& /*library*/, Plans& /*plans*/, const LayerNormShape& shape) {
    return std::make_unique<LayerNormOperation>(shape);
}

}  // namespace finch::backend::cpu
