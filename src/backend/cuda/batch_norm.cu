#include "finch/backend/operation.hpp"

#include "grid.hpp"
#include "kernel_launch.hpp"
#include "kernels/persistent_batch_norm.hpp"
#include "number_of.hpp"
#include "operations.hpp"
#include "step_context.hpp"

#include <algorithm>
#include <cstdint>

namespace finch::backend::cuda {
namespace {

std::int64_t rows_of(const BatchNormShape& shape) {
    return shape.batch * shape.pixels;
}

int width_for(const BatchNormShape& shape) {
    return shape.x_type == TensorType::float32 && shape.y_type == TensorType::float32 ? 1 : 8;
}

/// Returns a cut into at most `most_blocks` blocks, or the number of groups of channels if there are more.
RowCut cut_into(std::int64_t most_blocks, const BatchNormShape& shape, std::int64_t rows_of_thread,
                int most_lane_bits) {
    const int width = width_for(shape);
    const RowCut any = cut_rows(1, shape.channels, width, 1, 1, most_lane_bits);
    const std::int64_t most_parts = std::max<std::int64_t>(1, most_blocks / any.grid(1, width).blocks_x);
    return cut_rows(rows_of(shape), shape.channels, width, rows_of_thread, most_parts, most_lane_bits);
}

/// The division in float32 and in validation. A small batch is also divided into enough blocks to fill the GPU.
RowCut cut_for_many_blocks(const BatchNormShape& shape, const DeviceFacts& facts) {
    return cut_into(std::int64_t{4} * facts.multiprocessors, shape, 8, 5);
}

/// The division of training in bfloat16. On one rank, one cooperative kernel and two halves have the same bits. Each
/// block adds the sums of all parts for its channels, so it has few channels.
RowCut cut_persistent(const BatchNormShape& shape, const DeviceFacts& facts) {
    return cut_into(facts.multiprocessors, shape, 4, 3);
}

std::size_t partial_bytes(const BatchNormShape& shape, const DeviceFacts& facts) {
    const auto parts_of = [&](const RowCut& cut) { return cut.grid(rows_of(shape), width_for(shape)).blocks_y; };
    const std::int64_t parts = parts_of(cut_for_many_blocks(shape, facts));
    const std::int64_t persistent_parts = width_for(shape) > 1 ? parts_of(cut_persistent(shape, facts)) : 0;
    return static_cast<std::size_t>(std::max(parts, persistent_parts) * 2 * shape.channels) * sizeof(double);
}

template <class X, class Y>
class BatchNormOperation : public Operation {
public:
    BatchNormOperation(Stream& stream, const BatchNormShape& shape)
        : stream_(stream.get()),
          shape_(shape),
          cut_(cut_for_many_blocks(shape, stream.facts())),
          persistent_cut_(cut_persistent(shape, stream.facts())),
          cooperates_(width > 1 && persistent_groups() <= stream.facts().multiprocessors && stream.may_cooperate()),
          shared_bytes_most_(stream.facts().shared_bytes_most),
          scratch_(stream.scratch(partial_bytes(shape, stream.facts()))) {
        const auto channels = static_cast<std::size_t>(shape.channels);
        doubles_ = stream.allocate(2 * (3 * channels + 1) * sizeof(double));
        factors_ = stream.allocate(3 * channels * sizeof(float));
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
        const BatchNormGradient<X, Y, width> only_x{
            .activation = shape_.activation, .x = numbers(x[0]), .y = nullptr, .grad_y = nullptr};
        run<false>(pass, only_x, nullptr, reinterpret_cast<Y*>(y));
    }

    void backward(const Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        const BatchNormGradient<X, Y, width> gradient{.activation = shape_.activation,
                                                      .x = numbers(x[0]),
                                                      .y = reinterpret_cast<const Y*>(y),
                                                      .grad_y = reinterpret_cast<const Y*>(grad_y)};
        run<true>(pass, gradient, grad_parameters, reinterpret_cast<X*>(grad_x[0]));
    }

    [[nodiscard]] std::size_t forward_sums() const override { return backward_sums() + 1; }
    [[nodiscard]] std::size_t backward_sums() const override { return static_cast<std::size_t>(2 * shape_.channels); }
    [[nodiscard]] std::string implementation() const override { return "finch:batch_norm"; }

private:
    static constexpr int width = width_of<X, Y>;

    [[nodiscard]] static const X* numbers(const float* x) { return reinterpret_cast<const X*>(x); }

    [[nodiscard]] BatchNormStatistics statistics() const {
        return {.channels = shape_.channels,
                .momentum = shape_.momentum,
                .epsilon = shape_.epsilon,
                .parameters = parameters_,
                .buffers = buffers_,
                .skipped_bias_offset = shape_.skipped_bias_offset,
                .memory = memory_};
    }

    [[nodiscard]] std::int64_t persistent_groups() const {
        return persistent_cut_.grid(rows_of(shape_), width).blocks_x;
    }

    template <bool is_backward>
    void run(const Pass& pass, const BatchNormGradient<X, Y, width>& gradient, float* grad_parameters,
             std::conditional_t<is_backward, X, Y>* results) const {
        using Kernel = PersistentBatchNorm<X, Y, width, is_backward>;
        const bool trains = pass.mode == Mode::training;
        const bool is_persistent = width > 1 && trains && pass.group == nullptr;
        const RowCut& cut = width > 1 && trains ? persistent_cut_ : cut_;
        Grid grid = cut.grid(rows_of(shape_), width);
        const auto rows_of_thread =
            static_cast<std::size_t>(groups_of(cut.rows_of_part, RowCut::threads >> cut.lane_bits));
        const std::size_t room = is_persistent && cooperates_ ? shared_bytes_most_ - Kernel::sums_bytes : 0;
        const std::size_t kept = std::min(rows_of_thread, room / Kernel::kept_row_bytes);
        grid.shared_bytes = Kernel::sums_bytes + kept * Kernel::kept_row_bytes;
        Kernel kernel{.state = trains ? own(pass.step).view().state : nullptr,
                      .pixels = shape_.pixels,
                      .rows = rows_of(shape_),
                      .cut = cut,
                      .parts = trains ? static_cast<int>(grid.blocks_y) : 0,
                      .kept = static_cast<int>(kept),
                      .gradient = gradient,
                      .statistics = statistics(),
                      .partial = static_cast<double*>(scratch_->get()),
                      .total_values = nullptr,
                      .grad_parameters = grad_parameters,
                      .results = results};
        if constexpr (width > 1) {
            if (is_persistent && cooperates_) {
                FINCH_CUDA(launch(stream_, grid, kernel));
                return;
            }
        }
        if (trains) {
            FINCH_CUDA(launch(stream_, grid, HalfKernel<Kernel, true>{kernel}));
        }
        if (trains && !is_persistent) {
            double* const sums = is_backward ? memory_.backward_sums : memory_.forward_sums;
            FINCH_CUDA(launch(stream_, grid_for(32 * shape_.channels),
                              BatchNormTotals{.state = kernel.state,
                                              .pixels = shape_.pixels,
                                              .parts = kernel.parts,
                                              .partial = kernel.partial,
                                              .sums = sums,
                                              .grad_parameters = grad_parameters,
                                              .statistics = kernel.statistics}));
            if (pass.group != nullptr) {
                pass.group->sum(sums, is_backward ? backward_sums() : forward_sums());
            }
            kernel.partial = sums;
            kernel.parts = 1;
            kernel.total_values = memory_.forward_sums + 2 * shape_.channels;
            kernel.grad_parameters = nullptr;
        }
        if (results != nullptr || kernel.grad_parameters != nullptr) {
            FINCH_CUDA(launch(stream_, grid, HalfKernel<Kernel, false>{kernel}));
        }
    }

    cudaStream_t stream_;
    BatchNormShape shape_;
    RowCut cut_, persistent_cut_;
    bool cooperates_;
    std::size_t shared_bytes_most_;
    std::shared_ptr<const Scratch> scratch_;
    StreamMemory doubles_;
    StreamMemory factors_;
    BatchNormMemory memory_{};
    const float* parameters_ = nullptr;
    float* buffers_ = nullptr;
};

}  // namespace

std::size_t scratch(Stream& stream, const BatchNormShape& shape) {
    return partial_bytes(shape, stream.facts());
}

template <>
std::unique_ptr<Operation> make(Stream& stream, const BatchNormShape& shape) {
    return with_number(shape.x_type, [&](auto x) {
        return with_number(shape.y_type, [&](auto y) -> std::unique_ptr<Operation> {
            return std::make_unique<BatchNormOperation<typename decltype(x)::type, typename decltype(y)::type>>(stream,
                                                                                                                shape);
        });
    });
}

}  // namespace finch::backend::cuda
