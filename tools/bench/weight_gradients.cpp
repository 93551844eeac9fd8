// Compares number formats of bfloat16 trainings on the CPU, with emulated rounding: of the gradients of convolution
// weights, and of stored activations.
//   ninja -C build bench_weight_gradients
//   FINCH_MNIST=DIR build/bench_weight_gradients [SEEDS] [BATCHES] [EPOCHS] [FORMAT]      (5, 156, 3, all)
// Batches have 64 images; the number of training images is a multiple of it, since padding of a batch has no gradients.
// In all formats but the first, forward and the gradient of x read and write bfloat16. The formats of the gradients of
// the weights:
//   float32    all passes in float32
//   tf32       factors of 10 bits of mantissa, a float32 sum: what Finch does on GPUs for activations in float32
//   bfloat16   factors of 7 bits, and the sum is rounded to 7 bits: what torch.autocast does
//   stored     like bfloat16; also rounds activations and their gradients, except logits, to 7 bits in memory: what
//              Finch does on GPUs
// For each network and format, prints the mean validation accuracy and loss over the seeds, and the relative error of a
// weight gradient after the first step.
#include "finch/base/format.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/comm/mpi.hpp"
#include "finch/train/training.hpp"

#include "support/reference.hpp"
#include "support/wrapped_device.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mpi.h>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

using namespace finch;

namespace {

enum class Format : std::uint8_t { float32, tf32, bfloat16, stored };
constexpr std::array formats{Format::float32, Format::tf32, Format::bfloat16, Format::stored};
constexpr std::array<std::string_view, 4> names{"float32", "tf32", "bfloat16", "stored"};

/// Returns the nearest number with `bits` bits of mantissa (ties to even).
float rounded(float value, int bits) {
    if (!std::isfinite(value) || bits >= 23) {
        return value;
    }
    const int dropped = 23 - bits;
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t half = (1U << (dropped - 1)) - 1 + ((word >> dropped) & 1U);
    return std::bit_cast<float>((word + half) >> dropped << dropped);
}
std::vector<float> rounded(const float* from, std::size_t count, int bits) {
    std::vector<float> to(count);
    std::transform(from, from + count, to.begin(), [bits](float value) { return rounded(value, bits); });
    return to;
}

/// Sums of squares of the weight gradients and of their errors.
struct Errors {
    double squares = 0;
    double gradients = 0;
};

class RoundedConvolution : public backend::Operation {
public:
    RoundedConvolution(test::WrappedDevice& device, backend::ConvolutionShape shape, Format format, Errors& errors)
        : shape_(shape), format_(format), errors_(errors), bias_(static_cast<std::size_t>(shape.channels_out)) {
        shape.activation = backend::Activation::none;
        exact_ = device.make_exact(shape);
        parameters_.resize(weights() + bias_.size());
    }

    void pack(const float* parameters, float* buffers) override {
        for (std::size_t i = 0; i < weights(); ++i) {
            parameters_[i] = rounded(parameters[i], 7);
        }
        std::copy_n(parameters + weights(), bias_.size(), bias_.begin());
        exact_->pack(parameters_.data(), buffers);
    }
    void forward(const backend::Pass& pass, std::span<const float* const> x, float* y) override {
        const std::vector<float> of_x = rounded(x[0], inputs(), 7);
        const float* const only = of_x.data();
        exact_->forward(pass, std::span(&only, 1), y);
        for (std::size_t i = 0; i < outputs(); ++i) {
            y[i] = rounded(y[i], 7) + (skips_bias() ? 0.0F : bias_[i % bias_.size()]);
            y[i] = static_cast<float>(reference::activate(shape_.activation, static_cast<double>(y[i])));
        }
    }
    void backward(const backend::Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        for (std::size_t i = 0; i < outputs(); ++i) {
            grad_y[i] *= static_cast<float>(reference::slope(shape_.activation, static_cast<double>(y[i])));
        }
        const std::size_t all = weights() + bias_.size();
        std::vector<float> unused(all);
        const auto run = [&](int bits, std::span<float* const> of_x, float* of_weights) {
            const std::vector<float> from = rounded(x[0], inputs(), bits);
            std::vector<float> grads = rounded(grad_y, outputs(), bits);
            const float* const only = from.data();
            exact_->backward(pass, std::span(&only, 1), y, grads.data(), of_x, of_weights);
        };
        run(7, grad_x, unused.data());
        for (float* const grad : grad_x) {
            if (grad != nullptr) {
                std::transform(grad, grad + inputs(), grad, [](float value) { return rounded(value, 7); });
            }
        }
        std::vector<float> ignored(inputs());
        float* const ignored_grad = ignored.data();
        run(format_ == Format::tf32 ? 10 : 7, std::span(&ignored_grad, 1), grad_parameters);
        if (format_ != Format::tf32) {
            std::transform(grad_parameters, grad_parameters + weights(), grad_parameters,
                           [](float value) { return rounded(value, 7); });
        }
        if (!is_measured_) {
            run(23, std::span(&ignored_grad, 1), unused.data());
            for (std::size_t i = 0; i < weights(); ++i) {
                errors_.squares += std::pow(static_cast<double>(grad_parameters[i] - unused[i]), 2);
                errors_.gradients += std::pow(static_cast<double>(unused[i]), 2);
            }
            is_measured_ = true;
        }
        std::fill(grad_parameters + weights(), grad_parameters + all, 0.0F);
        for (std::size_t i = 0; i < outputs() && !skips_bias(); ++i) {
            grad_parameters[weights() + i % bias_.size()] += grad_y[i];
        }
    }
    [[nodiscard]] std::string implementation() const override { return "rounded: " + exact_->implementation(); }

private:
    /// True if the batch normalisation after the convolution has the bias (BatchNormShape::skipped_bias_offset).
    [[nodiscard]] bool skips_bias() const {
        return format_ == Format::stored && shape_.activation == backend::Activation::none;
    }
    [[nodiscard]] std::size_t weights() const { return static_cast<std::size_t>(shape_.weights()); }
    [[nodiscard]] std::size_t inputs() const {
        return static_cast<std::size_t>(shape_.batch * shape_.height * shape_.width * shape_.channels_in);
    }
    [[nodiscard]] std::size_t outputs() const {
        return static_cast<std::size_t>(shape_.batch * shape_.height_out() * shape_.width_out() * shape_.channels_out);
    }

    backend::ConvolutionShape shape_;
    Format format_;
    Errors& errors_;
    bool is_measured_ = false;
    std::vector<float> bias_;
    std::vector<float> parameters_;              ///< of `exact_`: rounded weights, no bias
    std::unique_ptr<backend::Operation> exact_;  ///< float32, without the activation
};

void round(float* values, std::size_t count) {
    std::transform(values, values + count, values, [](float value) { return rounded(value, 7); });
}

/// An operation whose output and gradients of inputs are stored with 7 bits of mantissa.
class StoredOperation : public backend::Operation {
public:
    StoredOperation(std::unique_ptr<backend::Operation> operation, std::int64_t inputs, std::int64_t outputs)
        : operation_(std::move(operation)),
          inputs_(static_cast<std::size_t>(inputs)),
          outputs_(static_cast<std::size_t>(outputs)) {}

    void pack(const float* parameters, float* buffers) override { operation_->pack(parameters, buffers); }
    void forward(const backend::Pass& pass, std::span<const float* const> x, float* y) override {
        operation_->forward(pass, x, y);
        round(y, outputs_);
    }
    void backward(const backend::Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        operation_->backward(pass, x, y, grad_y, grad_x, grad_parameters);
        if (grad_x[0] != nullptr) {
            round(grad_x[0], inputs_);
        }
    }
    [[nodiscard]] std::size_t forward_sums() const override { return operation_->forward_sums(); }
    [[nodiscard]] std::size_t backward_sums() const override { return operation_->backward_sums(); }
    [[nodiscard]] std::string implementation() const override { return "stored: " + operation_->implementation(); }

private:
    std::unique_ptr<backend::Operation> operation_;
    std::size_t inputs_, outputs_;
};

class RoundingDevice : public test::WrappedDevice {
public:
    RoundingDevice(Format format, Errors& errors) : format_(format), errors_(errors) {}

    [[nodiscard]] std::unique_ptr<backend::Operation> make(const backend::OperationShape& shape) override {
        if (const auto* const of = std::get_if<backend::ConvolutionShape>(&shape);
            of != nullptr && format_ != Format::float32) {
            return stored(std::make_unique<RoundedConvolution>(*this, *of, format_, errors_),
                          of->batch * of->height * of->width * of->channels_in,
                          of->batch * of->height_out() * of->width_out() * of->channels_out);
        }
        if (const auto* const norm = std::get_if<backend::BatchNormShape>(&shape)) {
            const std::int64_t count = norm->batch * norm->pixels * norm->channels;
            return stored(WrappedDevice::make(shape), count, count);
        }
        if (const auto* const pool = std::get_if<backend::PoolingShape>(&shape)) {
            return stored(WrappedDevice::make(shape), pool->batch * pool->height * pool->width * pool->channels,
                          pool->batch * pool->height_out() * pool->width_out() * pool->channels);
        }
        return WrappedDevice::make(shape);
    }

private:
    [[nodiscard]] std::unique_ptr<backend::Operation> stored(std::unique_ptr<backend::Operation> operation,
                                                             std::int64_t inputs, std::int64_t outputs) const {
        if (format_ != Format::stored) {
            return operation;
        }
        return std::make_unique<StoredOperation>(std::move(operation), inputs, outputs);
    }

    Format format_;
    Errors& errors_;
};

nn::ModelSpec network(bool is_normalised) {
    nn::ModelSpec layers;
    for (const std::int64_t channels : {16, 32, 32}) {
        const auto relu = backend::Activation::relu;
        layers.emplace_back(
            nn::ConvLayer{.channels = channels, .activation = is_normalised ? backend::Activation::none : relu});
        if (is_normalised) {
            layers.emplace_back(nn::BatchNormLayer{.activation = relu});
        }
        layers.emplace_back(nn::PoolLayer{});
    }
    layers.emplace_back(nn::FlattenLayer{});
    layers.emplace_back(nn::LinearLayer{});
    return layers;
}

double mean_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double deviation_of(const std::vector<double>& values) {
    double squares = 0;
    for (const double value : values) {
        squares += std::pow(value - mean_of(values), 2);
    }
    return std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, values.size() - 1)));
}

}  // namespace

int main(int argc, char** argv) {
    const char* const folder = std::getenv("FINCH_MNIST");
    const auto argument = [&](int place, int usual) { return argc > place ? std::atoi(argv[place]) : usual; };
    if (folder == nullptr || argc > 5) {
        fmt::print(stderr, "usage: FINCH_MNIST=DIR bench_weight_gradients [SEEDS] [BATCHES] [EPOCHS] [FORMAT]\n");
        return 2;
    }
    const comm::Session session(argc, argv);
    const comm::Group group(MPI_COMM_SELF, 0, 0);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 60.0);
    for (const bool is_normalised : {false, true}) {
        for (const Format format : formats) {
            if (argc > 4 && names.at(static_cast<std::size_t>(format)) != argv[4]) {
                continue;
            }
            std::vector<double> accuracies;
            std::vector<double> losses;
            Errors errors;
            for (int seed = 1; seed <= argument(1, 5); ++seed) {
                train::Recipe recipe;
                recipe.seed = static_cast<std::uint64_t>(seed);
                recipe.data.kind = data::Kind::idx;
                recipe.data.path = folder;
                recipe.data.mean = {0.1307};
                recipe.data.deviation = {0.3081};
                recipe.data.training_samples = 64 * argument(2, 156);
                recipe.data.validation_samples = 10'000;
                recipe.training.epochs = argument(3, 3);
                recipe.training.batch_size = 64;
                recipe.training.optimizer = backend::Adam{};
                recipe.training.learning_rate = 0.002;
                recipe.model = network(is_normalised);
                const data::Datasets datasets = data::load(recipe.data, recipe.seed);
                RoundingDevice device(format, errors);
                train::Training training(device, group, *all_reduce, datasets, recipe);
                while (training.advance(1000) == train::State::running) {
                }
                accuracies.push_back(training.curve().back().validation_accuracy);
                losses.push_back(training.curve().back().validation_loss);
            }
            fmt::print(
                "{} {:8}: accuracy {:.4f} +- {:.4f}, loss {:.5f} +- {:.5f}, relative error of a first gradient "
                "{:.1e}\n",
                is_normalised ? "batch_norm" : "plain     ", names.at(static_cast<std::size_t>(format)),
                mean_of(accuracies), deviation_of(accuracies), mean_of(losses), deviation_of(losses),
                std::sqrt(errors.squares / std::max(errors.gradients, 1e-300)));
            std::fflush(stdout);
        }
    }
}
