#include "kernels/pooling.hpp"
#include "operations.hpp"

#include <algorithm>
#include <utility>

namespace finch::backend::cuda {
namespace {

PoolingSizes sizes_of(const PoolingShape& shape) {
    const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
    return {.height = narrow(shape.height),
            .width = narrow(shape.width),
            .channels = narrow(shape.channels),
            .height_out = narrow(shape.height_out()),
            .width_out = narrow(shape.width_out()),
            .kernel = narrow(shape.kernel),
            .stride = narrow(shape.stride),
            .padding = narrow(shape.padding)};
}

/// Blocks over rows of pixels; see PoolingPlace.
struct RowGrid {
    Grid grid;
    int parts;

    RowGrid(std::int64_t rows, std::int64_t elements) {
        grid.threads = static_cast<int>(std::min<std::int64_t>(256, (elements + 31) / 32 * 32));
        parts = static_cast<int>((elements + grid.threads - 1) / grid.threads);
        grid.blocks_x = rows * parts;
    }
};

class PoolingOperation : public Operation {
public:
    PoolingOperation(Stream& stream, const PoolingShape& shape)
        : stream_(stream.get()),
          sizes_(sizes_of(shape)),
          out_(shape.batch * shape.height_out(), shape.width_out() * shape.channels),
          in_(shape.batch * shape.height, shape.width * shape.channels) {
        if (shape.kind == Pooling::max) {
            const std::int64_t outputs = shape.batch * shape.height_out() * shape.width_out() * shape.channels;
            winners_ = stream.allocate(static_cast<std::size_t>(outputs) * sizeof(std::int32_t));
        }
    }

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        if (winners() != nullptr) {
            FINCH_CUDA(launch(
                stream_, out_.grid,
                MaxPoolingForward{.sizes = sizes_, .parts = out_.parts, .x = x[0], .y = y, .winners = winners()}));
        } else {
            FINCH_CUDA(launch(stream_, out_.grid,
                              AveragePoolingForward{.sizes = sizes_, .parts = out_.parts, .x = x[0], .y = y}));
        }
    }

    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        FINCH_CUDA(launch(
            stream_, in_.grid,
            PoolingBackward{
                .sizes = sizes_, .parts = in_.parts, .grad_y = grad_y, .winners = winners(), .grad_x = grad_x[0]}));
    }

    [[nodiscard]] std::string implementation() const override { return "finch:pooling"; }

private:
    [[nodiscard]] std::int32_t* winners() const { return static_cast<std::int32_t*>(winners_.get()); }

    cudaStream_t stream_;
    PoolingSizes sizes_;
    RowGrid out_;           ///< over y
    RowGrid in_;            ///< over x
    StreamMemory winners_;  ///< of the last forward; null for averages
};

}  // namespace

template <>
std::unique_ptr<Operation> make(Stream& stream, const PoolingShape& shape) {
    return std::make_unique<PoolingOperation>(stream, shape);
}

}  // namespace finch::backend::cuda
