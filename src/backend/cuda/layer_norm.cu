#include "grid.hpp"
#include "kernels/layer_norm.hpp"
#include "operations.hpp"

#include <algorithm>

namespace finch::backend::cuda {
namespace {

constexpr int threads = LayerNormForward::max_threads;

/// Into how many parts the rows are cut for the sums of the parameters, so that few channels still fill the GPU.
int parts_of(const LayerNormShape& shape, const DeviceFacts& facts) {
    constexpr std::int64_t rows_of_thread = 8;  // fewer are not worth a part
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
    StreamMemory moments_;  ///< of each sample of the last forward
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
