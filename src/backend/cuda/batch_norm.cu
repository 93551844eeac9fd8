#include "grid.hpp"
#include "kernels/batch_norm.hpp"
#include "operations.hpp"
#include "step_context.hpp"

#include <algorithm>

namespace finch::backend::cuda {
namespace {

/// How the sums over the rows are cut, so that small batches still fill the GPU.
struct Cuts {
    int lanes = 1;  ///< channels of a block: a power of two
    int parts = 1;  ///< of the rows
    std::size_t partial_bytes = 0;

    Cuts(const BatchNormShape& shape, const DeviceFacts& facts) {
        while (lanes < 32 && lanes < shape.channels) {
            lanes *= 2;
        }
        constexpr std::int64_t rows_of_thread = 8;  // fewer are not worth a part
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
    /// Σ a and Σ a·b by channel; see BatchNormTotals.
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
