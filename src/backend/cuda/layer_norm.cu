#include "grid.hpp"
#include "kernel_launch.hpp"
#include "kernels/numbers.hpp"
#include "operations.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace finch::backend::cuda {
namespace {

// Layer normalisation of each sample of (batch, pixels, channels), like src/backend/cpu/layer_norm.cpp. All sums are
// double and have a fixed order.

/// The kernel for y and for the mean and inverse deviation of each sample (batch, 2). Grid: x = samples. Shared memory:
/// one double per thread.
struct LayerNormForward {
    static constexpr int max_threads = 256;
    std::int64_t sample;  ///< pixels · channels
    std::int64_t channels;
    double epsilon;
    const float* parameters;  ///< weight, bias
    const float* x;
    float* y;
    double* moments;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        auto* shared = thread.template shared<double>();
        const float* from = x + thread.block_x() * sample;
        float* to = y + thread.block_x() * sample;
        double sum = 0;
        for (std::int64_t i = thread.index(); i < sample; i += thread.count()) {
            sum += static_cast<double>(from[i]);
        }
        const double mean = block_sum(thread, sum, shared) / static_cast<double>(sample);
        double squares = 0;
        for (std::int64_t i = thread.index(); i < sample; i += thread.count()) {
            const double apart = static_cast<double>(from[i]) - mean;
            squares += apart * apart;
        }
        const double variance = block_sum(thread, squares, shared) / static_cast<double>(sample);
        const double inverse_deviation = 1.0 / std::sqrt(variance + epsilon);
        for (std::int64_t i = thread.index(); i < sample; i += thread.count()) {
            const std::int64_t c = i % channels;
            to[i] = (from[i] - static_cast<float>(mean)) * static_cast<float>(inverse_deviation) * parameters[c] +
                    parameters[channels + c];
        }
        if (thread.index() == 0) {
            moments[2 * thread.block_x()] = mean;
            moments[2 * thread.block_x() + 1] = inverse_deviation;
        }
    }
};

/// The kernel for grad_x. Grid: x = samples. Shared memory: one double per thread.
struct LayerNormInputGradient {
    static constexpr int max_threads = 256;
    std::int64_t sample;
    std::int64_t channels;
    const float* parameters;
    const float* x;
    const float* grad_y;
    const double* moments;
    float* grad_x;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        auto* shared = thread.template shared<double>();
        const std::int64_t begin = thread.block_x() * sample;
        const double mean = moments[2 * thread.block_x()];
        const double inverse_deviation = moments[2 * thread.block_x() + 1];
        double sum = 0;
        double product = 0;
        for (std::int64_t i = thread.index(); i < sample; i += thread.count()) {
            const double grad = static_cast<double>(grad_y[begin + i]) * static_cast<double>(parameters[i % channels]);
            sum += grad;
            product += grad * (static_cast<double>(x[begin + i]) - mean) * inverse_deviation;
        }
        sum = block_sum(thread, sum, shared);
        product = block_sum(thread, product, shared);
        const auto shift = static_cast<float>(-sum / static_cast<double>(sample));
        const auto of_x = static_cast<float>(-product / static_cast<double>(sample) * inverse_deviation);
        for (std::int64_t i = thread.index(); i < sample; i += thread.count()) {
            grad_x[begin + i] = (grad_y[begin + i] * parameters[i % channels] +
                                 (x[begin + i] - static_cast<float>(mean)) * of_x + shift) *
                                static_cast<float>(inverse_deviation);
        }
    }
};

/// The kernel that computes `partial` (parts, 2·channels), which holds Σ grad · normalised x and Σ grad for each part
/// of the rows. A row is one pixel of a sample. Grid: x = groups of 32 channels, y = parts. Each of 32 neighbouring
/// threads processes one channel. Shared memory: two doubles per thread.
struct LayerNormPartials {
    static constexpr int max_threads = 256;
    static constexpr int lanes = 32;
    std::int64_t rows, pixels, channels;
    int parts;
    const float* x;
    const float* grad_y;
    const double* moments;
    double* partial;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t channel = static_cast<std::int64_t>(thread.block_x()) * lanes + thread.index() % lanes;
        const int row_lanes = thread.count() / lanes;
        double product = 0;
        double sum = 0;
        if (channel < channels) {
            const std::int64_t end = rows * (thread.block_y() + 1) / parts;
            std::int64_t row = rows * thread.block_y() / parts + thread.index() / lanes;
            for (; row < end; row += row_lanes) {
                const double* of_sample = moments + 2 * (row / pixels);
                const auto grad = static_cast<double>(grad_y[row * channels + channel]);
                product += grad * (static_cast<double>(x[row * channels + channel]) - of_sample[0]) * of_sample[1];
                sum += grad;
            }
        }
        auto* products = thread.template shared<double>();
        double* sums = products + thread.count();
        products[thread.index()] = product;
        sums[thread.index()] = sum;
        thread.sync();
        if (thread.index() < lanes && channel < channels) {
            for (int i = 1; i < row_lanes; ++i) {
                product += products[thread.index() + i * lanes];
                sum += sums[thread.index() + i * lanes];
            }
            double* to = partial + thread.block_y() * 2 * channels + channel;
            to[0] = product;
            to[channels] = sum;
        }
    }
};

/// The kernel that adds the parts and writes the gradients of weight and bias.
struct LayerNormTotals {
    static constexpr int max_threads = 256;
    std::int64_t channels;
    int parts;
    const double* partial;
    float* grad_parameters;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < 2 * channels; i += thread.global_count()) {
            double sum = 0;
            for (int part = 0; part < parts; ++part) {
                sum += partial[part * 2 * channels + i];
            }
            grad_parameters[i] = static_cast<float>(sum);
        }
    }
};

constexpr int threads = LayerNormForward::max_threads;

/// Returns the number of parts into which the rows are divided for the gradients of the parameters. The fewer channels
/// there are, the more parts are needed to fill the GPU.
int parts_of(const LayerNormShape& shape, const DeviceFacts& facts) {
    constexpr std::int64_t rows_of_thread = 8;  // minimum rows per thread
    const std::int64_t wanted =
        std::int64_t{4} * facts.multiprocessors / groups_of(shape.channels, LayerNormPartials::lanes);
    const std::int64_t most =
        groups_of(shape.batch * shape.pixels, rows_of_thread * (threads / LayerNormPartials::lanes));
    return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, most));
}

std::size_t partial_bytes(const LayerNormShape& shape, int parts) {
    return static_cast<std::size_t>(parts * 2 * shape.channels) * sizeof(double);
}

class LayerNormOperation : public Operation {
public:
    LayerNormOperation(Stream& stream, const LayerNormShape& shape)
        : stream_(stream.get()),
          shape_(shape),
          parts_(parts_of(shape, stream.facts())),
          scratch_(stream.scratch(partial_bytes(shape, parts_))),
          moments_(stream.allocate(static_cast<std::size_t>(2 * shape.batch) * sizeof(double))) {}

    void pack(const float* parameters, float* /*buffers*/) override { parameters_ = parameters; }

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        FINCH_CUDA(launch(stream_, of_samples(),
                          LayerNormForward{.sample = shape_.pixels * shape_.channels,
                                           .channels = shape_.channels,
                                           .epsilon = shape_.epsilon,
                                           .parameters = parameters_,
                                           .x = x[0],
                                           .y = y,
                                           .moments = moments()}));
    }

    void backward(const Pass& /*pass*/, std::span<const float* const> x, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        auto* partial = static_cast<double*>(scratch_->get());
        FINCH_CUDA(launch(stream_,
                          {.blocks_x = groups_of(shape_.channels, LayerNormPartials::lanes),
                           .blocks_y = parts_,
                           .threads = threads,
                           .shared_bytes = 2 * threads * sizeof(double)},
                          LayerNormPartials{.rows = shape_.batch * shape_.pixels,
                                            .pixels = shape_.pixels,
                                            .channels = shape_.channels,
                                            .parts = parts_,
                                            .x = x[0],
                                            .grad_y = grad_y,
                                            .moments = moments(),
                                            .partial = partial}));
        FINCH_CUDA(launch(
            stream_, grid_for(2 * shape_.channels),
            LayerNormTotals{
                .channels = shape_.channels, .parts = parts_, .partial = partial, .grad_parameters = grad_parameters}));
        if (grad_x[0] != nullptr) {
            FINCH_CUDA(launch(stream_, of_samples(),
                              LayerNormInputGradient{.sample = shape_.pixels * shape_.channels,
                                                     .channels = shape_.channels,
                                                     .parameters = parameters_,
                                                     .x = x[0],
                                                     .grad_y = grad_y,
                                                     .moments = moments(),
                                                     .grad_x = grad_x[0]}));
        }
    }
    [[nodiscard]] std::string implementation() const override { return "finch:layer_norm"; }

private:
    [[nodiscard]] Grid of_samples() const {
        return {.blocks_x = shape_.batch, .threads = threads, .shared_bytes = threads * sizeof(double)};
    }
    [[nodiscard]] double* moments() const { return static_cast<double*>(moments_.get()); }

    cudaStream_t stream_;
    LayerNormShape shape_;
    int parts_;
    std::shared_ptr<const Scratch> scratch_;
    StreamMemory moments_;  ///< of each sample in the last forward()
    const float* parameters_ = nullptr;
};

}  // namespace

std::size_t scratch(Stream& stream, const LayerNormShape& shape) {
    return partial_bytes(shape, parts_of(shape, stream.facts()));
}

template <>
std::unique_ptr<Operation> make(Stream& stream, const LayerNormShape& shape) {
    return std::make_unique<LayerNormOperation>(stream, shape);
}

}  // namespace finch::backend::cuda
