#include "elementwise.hpp"
#include "operations.hpp"
#include "slices.hpp"
#include "step_context.hpp"
#include "vectorised.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace finch::backend::cpu {
namespace {

constexpr std::int64_t rows_of_slice = 64;  ///< minimum rows per thread

/// Adds over `rows` of `channels` floats: sums[c] += Σ a, sums[channels + c] += Σ a·b.
FINCH_VECTORISED void add_row_sums(const float* __restrict a, const float* __restrict b, std::int64_t rows,
                                   std::int64_t channels, double* __restrict sums) {
    double* __restrict products = sums + channels;
    for (std::int64_t row = 0; row < rows; ++row, a += channels, b += channels) {
        for (std::int64_t c = 0; c < channels; ++c) {
            const double value = a[c];
            sums[c] += value;
            products[c] += value * static_cast<double>(b[c]);
        }
    }
}

/// Computes y = scale·(x − mean) + shift for each channel.
FINCH_VECTORISED void scale_rows(const float* __restrict x, const float* __restrict mean, const float* __restrict scale,
                                 const float* __restrict shift, float* __restrict y, std::int64_t rows,
                                 std::int64_t channels) {
    for (std::int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
        for (std::int64_t c = 0; c < channels; ++c) {
            y[c] = (x[c] - mean[c]) * scale[c] + shift[c];
        }
    }
}

/// Computes grad_x = of_grad·grad_y + of_x·(x − mean) + shift for each channel.
FINCH_VECTORISED void combine_rows(const float* __restrict grad_y, const float* __restrict x,
                                   const float* __restrict mean, const float* __restrict of_grad,
                                   const float* __restrict of_x, const float* __restrict shift,
                                   float* __restrict grad_x, std::int64_t rows, std::int64_t channels) {
    for (std::int64_t row = 0; row < rows; ++row, grad_y += channels, x += channels, grad_x += channels) {
        for (std::int64_t c = 0; c < channels; ++c) {
            grad_x[c] = grad_y[c] * of_grad[c] + (x[c] - mean[c]) * of_x[c] + shift[c];
        }
    }
}

class BatchNormOperation : public Operation {
public:
    explicit BatchNormOperation(const BatchNormShape& shape)
        : shape_(shape),
          channels_(static_cast<std::size_t>(shape.channels)),
          mean_(channels_),
          inverse_deviation_(channels_),
          factors_(4 * channels_) {}

    void pack(const float* parameters, float* buffers) override {
        parameters_ = parameters;
        buffers_ = buffers;
    }

    void forward(const Pass& pass, std::span<const float* const> x, float* y) override {
        const bool training = pass.mode == Mode::training;
        const std::int64_t rows = (training ? own(pass.step).samples() : shape_.batch) * shape_.pixels;
        if (training) {
            find_statistics(pass, x[0], rows);
        } else {
            take_running_statistics();
        }
        float* mean = factors_.data();
        float* scale = mean + channels_;
        for (std::size_t c = 0; c < channels_; ++c) {
            mean[c] = static_cast<float>(mean_[c]);
            scale[c] = static_cast<float>(static_cast<double>(weight(c)) * inverse_deviation_[c]);
        }
        for_slices(rows, rows_of_slice, [&](std::size_t /*slice*/, std::int64_t begin, std::int64_t end) {
            const std::int64_t at = begin * shape_.channels;
            scale_rows(x[0] + at, mean, scale, parameters_ + channels_, y + at, end - begin, shape_.channels);
            apply_activation(shape_.activation, y + at, y + at, floats(end - begin));
        });
        clear_padding(y, rows);
    }

    void backward(const Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        const std::int64_t rows = own(pass.step).samples() * shape_.pixels;
        apply_derivative(shape_.activation, y, grad_y, floats(rows));
        std::vector<double> sums = row_sums(grad_y, x[0], rows);
        for (std::size_t c = 0; c < channels_; ++c) {
            double& of_normalised = sums[channels_ + c];  // Σ grad_y · normalised x
            of_normalised = (of_normalised - mean_[c] * sums[c]) * inverse_deviation_[c];
            grad_parameters[c] = static_cast<float>(of_normalised);
            grad_parameters[channels_ + c] = static_cast<float>(sums[c]);
        }
        if (pass.group != nullptr) {
            pass.group->sum(sums.data(), sums.size());
        }
        if (grad_x[0] == nullptr) {
            return;
        }
        float* mean = factors_.data();
        float* of_grad = mean + channels_;
        float* of_x = of_grad + channels_;
        float* shift = of_x + channels_;
        for (std::size_t c = 0; c < channels_; ++c) {
            const double factor = static_cast<double>(weight(c)) * inverse_deviation_[c];
            const double slope = -factor * inverse_deviation_[c] * sums[channels_ + c] / total_;
            mean[c] = static_cast<float>(mean_[c]);
            of_grad[c] = static_cast<float>(factor);
            of_x[c] = static_cast<float>(slope);
            shift[c] = static_cast<float>(-factor * sums[c] / total_);
        }
        for_slices(rows, rows_of_slice, [&](std::size_t /*slice*/, std::int64_t begin, std::int64_t end) {
            const std::int64_t at = begin * shape_.channels;
            combine_rows(grad_y + at, x[0] + at, mean, of_grad, of_x, shift, grad_x[0] + at, end - begin,
                         shape_.channels);
        });
        clear_padding(grad_x[0], rows);
    }

    /// The numbers that forward() sums: Σ x, Σ x², and the number of values.
    [[nodiscard]] std::size_t forward_sums() const override { return 2 * channels_ + 1; }
    [[nodiscard]] std::size_t backward_sums() const override { return 2 * channels_; }
    [[nodiscard]] std::string implementation() const override { return "finch:loop"; }

private:
    [[nodiscard]] float weight(std::size_t c) const { return parameters_[c]; }
    [[nodiscard]] std::size_t floats(std::int64_t rows) const { return static_cast<std::size_t>(rows) * channels_; }

    /// Returns Σ a for each channel, then Σ a·b for each channel.
    [[nodiscard]] std::vector<double> row_sums(const float* a, const float* b, std::int64_t rows) {
        return sum_slices(rows, rows_of_slice, 2 * channels_, [&](std::int64_t begin, std::int64_t end, double* sums) {
            const std::int64_t at = begin * shape_.channels;
            add_row_sums(a + at, b + at, end - begin, shape_.channels, sums);
        });
    }

    void find_statistics(const Pass& pass, const float* x, std::int64_t rows) {
        std::vector<double> sums = row_sums(x, x, rows);
        sums.push_back(static_cast<double>(rows));
        if (pass.group != nullptr) {
            pass.group->sum(sums.data(), sums.size());
        }
        total_ = std::max(1.0, sums.back());  // a part of a batch may be empty on all ranks
        if (sums.back() == 0) {
            return;
        }
        float* running_mean = buffers_;
        float* running_variance = buffers_ + channels_;
        for (std::size_t c = 0; c < channels_; ++c) {
            const double mean = sums[c] / total_;
            const double variance = std::max(0.0, sums[channels_ + c] / total_ - mean * mean);
            mean_[c] = mean;
            inverse_deviation_[c] = 1.0 / std::sqrt(variance + shape_.epsilon);
            follow(running_mean[c], mean);
            follow(running_variance[c], variance * total_ / std::max(1.0, total_ - 1));
        }
    }
    void follow(float& running, double value) const {
        running = static_cast<float>((1 - shape_.momentum) * static_cast<double>(running) + shape_.momentum * value);
    }

    void take_running_statistics() {
        for (std::size_t c = 0; c < channels_; ++c) {
            mean_[c] = buffers_[c];
            inverse_deviation_[c] = 1.0 / std::sqrt(static_cast<double>(buffers_[channels_ + c]) + shape_.epsilon);
        }
    }

    /// Sets the values after the first `rows` of a batch to 0.
    void clear_padding(float* values, std::int64_t rows) const {
        std::fill(values + floats(rows), values + floats(shape_.batch * shape_.pixels), 0.0F);
    }

    BatchNormShape shape_;
    std::size_t channels_;
    const float* parameters_ = nullptr;  ///< weight, bias
    float* buffers_ = nullptr;           ///< running mean, running variance
    std::vector<double> mean_;
    std::vector<double> inverse_deviation_;
    std::vector<float> factors_;  ///< per channel, for the loops over the batch
    double total_ = 1;            ///< values per channel in the batch of the whole worker
};

}  // namespace

template <>
std::unique_ptr<Operation> make(const Library& /*library*/, Plans& /*plans*/, const BatchNormShape& shape) {
    return std::make_unique<BatchNormOperation>(shape);
}

}  // namespace finch::backend::cpu
