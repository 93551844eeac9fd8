#include "finch/backend/operation.hpp"

#include "grid.hpp"
#include "kernels/elementwise.hpp"
#include "operations.hpp"
#include "step_context.hpp"
#include "step_row.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <kernel_launch.hpp>

namespace finch::backend::cuda {
namespace {

// Batch normalisation over (batch, pixels, channels), like src/backend/cpu/batch_norm.cpp. The sums run over all rows
// of pixels except padding. Each block sums its part of the rows. Another kernel then adds the sums of the parts in a
// fixed order.

/// The numbers that a layer keeps per channel in device memory.
struct BatchNormMemory {
    double* forward_sums;       ///< (2·channels + 1): Σ x, Σ x², and how many values
    double* backward_sums;      ///< (2·channels + 1): Σ grad, Σ grad · normalised x
    double* mean;               ///< (channels), of the batch; or the running mean
    double* inverse_deviation;  ///< (channels)
    float* factors;             ///< (4·channels), for the kernel over the batch
};

/// The kernel that computes `partial` (parts, 2·channels), which holds Σ a and Σ a·b for each part of the rows. In
/// backward, `a` is grad_y, and the kernel first multiplies `a` by the activation's derivative. Grid: x = groups of
/// `lanes` channels, y = parts. Shared memory: two doubles per thread.
struct BatchNormPartials {
    static constexpr int max_threads = 256;
    const StepState* state;
    std::int64_t pixels;
    std::int64_t channels;
    int lanes;  ///< neighbouring threads with one channel each; divides the threads of a block
    int parts;
    Activation activation;  ///< none in forward
    const float* y;
    const float* a;
    const float* b;
    double* partial;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t rows = state->current.samples * pixels;
        const std::int64_t channel = static_cast<std::int64_t>(thread.block_x()) * lanes + thread.index() % lanes;
        const int row_lanes = thread.count() / lanes;
        const std::int64_t end = rows * (thread.block_y() + 1) / parts;
        double sum = 0;
        double product = 0;
        if (channel < channels) {
            std::int64_t row = rows * thread.block_y() / parts + thread.index() / lanes;
            for (; row < end; row += row_lanes) {
                const std::int64_t i = row * channels + channel;
                const double value = activation == Activation::none ? a[i] : times_slope(activation, y[i], a[i]);
                sum += value;
                product += value * static_cast<double>(b[i]);
            }
        }
        auto* sums = thread.template shared<double>();
        double* products = sums + thread.count();
        sums[thread.index()] = sum;
        products[thread.index()] = product;
        thread.sync();
        if (thread.index() < lanes && channel < channels) {
            for (int i = 1; i < row_lanes; ++i) {
                sum += sums[thread.index() + i * lanes];
                product += products[thread.index() + i * lanes];
            }
            double* to = partial + thread.block_y() * 2 * channels + channel;
            to[0] = sum;
            to[channels] = product;
        }
    }
};

/// The kernel that adds the partial sums. One warp adds the sums of one channel. In backward (`grad_parameters` is not
/// null) the kernel computes Σ grad · normalised x from Σ grad · x, and also writes `grad_parameters`.
struct BatchNormTotals {
    static constexpr int max_threads = 256;
    const StepState* state;
    std::int64_t pixels;
    std::int64_t channels;
    int parts;
    const double* partial;
    BatchNormMemory memory;
    float* grad_parameters;  ///< weight, bias

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t channel = thread.global_index() / 32;
        double sum = 0;
        double product = 0;
        if (channel < channels) {
            for (int part = thread.index() % 32; part < parts; part += 32) {
                sum += partial[part * 2 * channels + channel];
                product += partial[part * 2 * channels + channels + channel];
            }
        }
        FINCH_UNROLL for (int mask = 1; mask < 32; mask *= 2) {
            sum += thread.shuffle_xor(sum, mask);
            product += thread.shuffle_xor(product, mask);
        }
        if (channel >= channels || thread.index() % 32 != 0) {
            return;
        }
        double* totals = memory.forward_sums;
        if (grad_parameters != nullptr) {
            totals = memory.backward_sums;
            product = (product - memory.mean[channel] * sum) * memory.inverse_deviation[channel];
            grad_parameters[channel] = static_cast<float>(product);
            grad_parameters[channels + channel] = static_cast<float>(sum);
        }
        totals[channel] = sum;
        totals[channels + channel] = product;
        if (channel == 0) {
            totals[2 * channels] = static_cast<double>(state->current.samples * pixels);
        }
    }
};

/// The kernel for the mean, scale and shift of each channel. In training the kernel computes them from the sums over
/// the whole batch, and updates the running statistics. In validation it takes mean and variance from the running
/// statistics.
struct BatchNormStatistics {
    static constexpr int max_threads = 256;
    Mode mode;
    std::int64_t channels;
    double momentum;
    double epsilon;
    const float* parameters;  ///< weight, bias
    float* buffers;           ///< running mean, running variance
    BatchNormMemory memory;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t c = thread.global_index();
        if (c >= channels) {
            return;
        }
        double mean = buffers[c];
        double variance = buffers[channels + c];
        if (mode == Mode::training && memory.forward_sums[2 * channels] > 0) {  // a part of a batch may be empty
            const double total = memory.forward_sums[2 * channels];
            mean = memory.forward_sums[c] / total;
            variance = std::fmax(0.0, memory.forward_sums[channels + c] / total - mean * mean);
            follow(buffers[c], mean);
            follow(buffers[channels + c], variance * total / std::fmax(1.0, total - 1));
        }
        const double inverse_deviation = 1.0 / std::sqrt(variance + epsilon);
        memory.mean[c] = mean;
        memory.inverse_deviation[c] = inverse_deviation;
        memory.factors[c] = static_cast<float>(mean);
        memory.factors[channels + c] = static_cast<float>(static_cast<double>(parameters[c]) * inverse_deviation);
        memory.factors[2 * channels + c] = parameters[channels + c];
    }

private:
    FINCH_DEVICE void follow(float& running, double value) const {
        running = static_cast<float>((1 - momentum) * static_cast<double>(running) + momentum * value);
    }
};

/// The kernel for the mean and the factors in the formula grad_x = of_grad · grad + of_x · (x − mean) + shift. The
/// factors are computed from the sums over the whole batch.
struct BatchNormGradientFactors {
    static constexpr int max_threads = 256;
    std::int64_t channels;
    const float* parameters;
    BatchNormMemory memory;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t c = thread.global_index();
        if (c >= channels) {
            return;
        }
        const double total = std::fmax(1.0, memory.forward_sums[2 * channels]);
        const double factor = static_cast<double>(parameters[c]) * memory.inverse_deviation[c];
        const double slope = -factor * memory.inverse_deviation[c] * memory.backward_sums[channels + c] / total;
        memory.factors[c] = static_cast<float>(memory.mean[c]);
        memory.factors[channels + c] = static_cast<float>(factor);
        memory.factors[2 * channels + c] = static_cast<float>(slope);
        memory.factors[3 * channels + c] = static_cast<float>(-factor * memory.backward_sums[c] / total);
    }
};

/// The last kernel of forward and of backward. It applies the factors of a channel to each value of the channel.
/// Padding becomes 0.
struct BatchNormApply {
    static constexpr int max_threads = 256;
    const StepState* state;  ///< null: there is no padding (validation)
    std::int64_t sample;     ///< pixels · channels
    std::int64_t count;      ///< batch · pixels · channels
    std::int64_t channels;
    Activation activation;
    const float* factors;
    const float* x;
    const float* y;       ///< backward
    const float* grad_y;  ///< null: forward
    float* to;            ///< y, or grad_x

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t real = state == nullptr ? count : state->current.samples * sample;
        const std::int64_t stride = thread.global_count() % channels;
        std::int64_t c = thread.global_index() % channels;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            to[i] = i < real ? value(i, c) : 0.0F;
            c += stride;
            c -= c >= channels ? channels : 0;
        }
    }

private:
    [[nodiscard]] FINCH_DEVICE float value(std::int64_t i, std::int64_t c) const {
        const float centred = x[i] - factors[c];
        if (grad_y == nullptr) {
            return activate(activation, centred * factors[channels + c] + factors[2 * channels + c]);
        }
        const float grad = activation == Activation::none ? grad_y[i] : times_slope(activation, y[i], grad_y[i]);
        return grad * factors[channels + c] + centred * factors[2 * channels + c] + factors[3 * channels + c];
    }
};

/// The division of the sums over the rows into blocks. A small batch is also divided into enough blocks to fill the
/// GPU.
struct Cuts {
    int lanes = 1;  ///< channels per block: a power of two
    int parts = 1;  ///< parts of the rows
    std::size_t partial_bytes = 0;

    Cuts(const BatchNormShape& shape, const DeviceFacts& facts) {
        while (lanes < 32 && lanes < shape.channels) {
            lanes *= 2;
        }
        constexpr std::int64_t rows_of_thread = 8;  // minimum rows per thread
        const std::int64_t rows = shape.batch * shape.pixels;
        const std::int64_t wanted = std::int64_t{4} * facts.multiprocessors / groups_of(shape.channels, lanes);
        parts = static_cast<int>(
            std::clamp<std::int64_t>(wanted, 1, groups_of(rows, rows_of_thread * (max_threads / lanes))));
        partial_bytes = static_cast<std::size_t>(parts * 2 * shape.channels) * sizeof(double);
    }
    static constexpr int max_threads = BatchNormPartials::max_threads;
};

class BatchNormOperation : public Operation {
public:
    BatchNormOperation(Stream& stream, const BatchNormShape& shape)
        : stream_(stream.get()),
          shape_(shape),
          cuts_(shape, stream.facts()),
          scratch_(stream.scratch(cuts_.partial_bytes)) {
        const auto channels = static_cast<std::size_t>(shape.channels);
        doubles_ = stream.allocate(2 * (3 * channels + 1) * sizeof(double));
        factors_ = stream.allocate(4 * channels * sizeof(float));
        memory_.forward_sums = static_cast<double*>(doubles_.get());
        memory_.backward_sums = memory_.forward_sums + forward_sums();
        memory_.mean = memory_.backward_sums + forward_sums();
        memory_.inverse_deviation = memory_.mean + channels;
        memory_.factors = static_cast<float*>(factors_.get());
    }

    void pack(const float* parameters, float* buffers) override {
        parameters_ = parameters;
        buffers_ = buffers;
    }

    void forward(const Pass& pass, std::span<const float* const> x, float* y) override {
        const bool training = pass.mode == Mode::training;
        const StepState* state = own(pass.step).view().state;
        if (training) {
            sum_rows(state, Activation::none, nullptr, x[0], x[0], nullptr);
            if (pass.group != nullptr) {
                pass.group->sum(memory_.forward_sums, forward_sums());
            }
        }
        FINCH_CUDA(launch(stream_, grid_for(shape_.channels),
                          BatchNormStatistics{.mode = pass.mode,
                                              .channels = shape_.channels,
                                              .momentum = shape_.momentum,
                                              .epsilon = shape_.epsilon,
                                              .parameters = parameters_,
                                              .buffers = buffers_,
                                              .memory = memory_}));
        apply(training ? state : nullptr, x[0], nullptr, nullptr, y);
    }

    void backward(const Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        const StepState* state = own(pass.step).view().state;
        sum_rows(state, shape_.activation, y, grad_y, x[0], grad_parameters);
        if (pass.group != nullptr) {
            pass.group->sum(memory_.backward_sums, backward_sums());
        }
        if (grad_x[0] != nullptr) {
            FINCH_CUDA(launch(
                stream_, grid_for(shape_.channels),
                BatchNormGradientFactors{.channels = shape_.channels, .parameters = parameters_, .memory = memory_}));
            apply(state, x[0], y, grad_y, grad_x[0]);
        }
    }

    [[nodiscard]] std::size_t forward_sums() const override { return backward_sums() + 1; }
    [[nodiscard]] std::size_t backward_sums() const override { return static_cast<std::size_t>(2 * shape_.channels); }
    [[nodiscard]] std::string implementation() const override { return "finch:batch_norm"; }

private:
    /// Computes Σ a and Σ a·b for each channel; see BatchNormTotals.
    void sum_rows(const StepState* state, Activation activation, const float* y, const float* a, const float* b,
                  float* grad_parameters) const {
        auto* partial = static_cast<double*>(scratch_->get());
        FINCH_CUDA(launch(stream_,
                          {.blocks_x = groups_of(shape_.channels, cuts_.lanes),
                           .blocks_y = cuts_.parts,
                           .threads = Cuts::max_threads,
                           .shared_bytes = 2 * Cuts::max_threads * sizeof(double)},
                          BatchNormPartials{.state = state,
                                            .pixels = shape_.pixels,
                                            .channels = shape_.channels,
                                            .lanes = cuts_.lanes,
                                            .parts = cuts_.parts,
                                            .activation = activation,
                                            .y = y,
                                            .a = a,
                                            .b = b,
                                            .partial = partial}));
        FINCH_CUDA(launch(stream_, grid_for(32 * shape_.channels),
                          BatchNormTotals{.state = state,
                                          .pixels = shape_.pixels,
                                          .channels = shape_.channels,
                                          .parts = cuts_.parts,
                                          .partial = partial,
                                          .memory = memory_,
                                          .grad_parameters = grad_parameters}));
    }

    void apply(const StepState* state, const float* x, const float* y, const float* grad_y, float* to) const {
        const std::int64_t sample = shape_.pixels * shape_.channels;
        const std::int64_t count = shape_.batch * sample;
        FINCH_CUDA(launch(stream_, grid_for(count),
                          BatchNormApply{.state = state,
                                         .sample = sample,
                                         .count = count,
                                         .channels = shape_.channels,
                                         .activation = shape_.activation,
                                         .factors = memory_.factors,
                                         .x = x,
                                         .y = y,
                                         .grad_y = grad_y,
                                         .to = to}));
    }

    cudaStream_t stream_;
    BatchNormShape shape_;
    Cuts cuts_;
    std::shared_ptr<const Scratch> scratch_;
    StreamMemory doubles_;
    StreamMemory factors_;
    BatchNormMemory memory_{};
    const float* parameters_ = nullptr;
    float* buffers_ = nullptr;
};

}  // namespace

std::size_t scratch(Stream& stream, const BatchNormShape& shape) {
    return Cuts(shape, stream.facts()).partial_bytes;
}

template <>
std::unique_ptr<Operation> make(Stream& stream, const BatchNormShape& shape) {
    return std::make_unique<BatchNormOperation>(stream, shape);
}

}  // namespace finch::backend::cuda
