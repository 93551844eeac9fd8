#include "grid.hpp"
#include "kernels/mean.hpp"
#include "operations.hpp"

namespace finch::backend::cuda {
namespace {

class MeanOperation : public Operation {
public:
    MeanOperation(Stream& stream, const MeanShape& shape) : stream_(stream.get()), shape_(shape) {}

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        FINCH_CUDA(launch(
            stream_, grid_for(shape_.batch * shape_.channels),
            MeanForward{
                .batch = shape_.batch, .pixels = shape_.pixels, .channels = shape_.channels, .x = x[0], .y = y}));
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        FINCH_CUDA(launch(stream_, grid_for(shape_.batch * shape_.pixels * shape_.channels),
                          MeanBackward{.batch = shape_.batch,
                                       .pixels = shape_.pixels,
                                       .channels = shape_.channels,
                                       .grad_y = grad_y,
                                       .grad_x = grad_x[0]}));
    }
    [[nodiscard]] std::string implementation() const override { return "finch:mean"; }

private:
    cudaStream_t stream_;
    MeanShape shape_;
};

}  // namespace

template <>
std::unique_ptr<Operation> make(Stream& stream, const MeanShape& shape) {
    return std::make_unique<MeanOperation>(stream, shape);
}

}  // namespace finch::backend::cuda
