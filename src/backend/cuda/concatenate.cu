#include "grid.hpp"
#include "kernels/concatenate.hpp"
#include "operations.hpp"

namespace finch::backend::cuda {
namespace {

class ConcatenateOperation : public Operation {
public:
    ConcatenateOperation(Stream& stream, const ConcatenateShape& shape) : stream_(stream.get()), shape_(shape) {}

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        FINCH_CUDA(launch(
            stream_, grid(),
            Concatenate{
                .rows = shape_.rows, .first = shape_.first, .second = shape_.second, .a = x[0], .b = x[1], .y = y}));
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        FINCH_CUDA(launch(stream_, grid(),
                          Split{.rows = shape_.rows,
                                .first = shape_.first,
                                .second = shape_.second,
                                .grad_y = grad_y,
                                .grad_a = grad_x[0],
                                .grad_b = grad_x[1]}));
    }
    [[nodiscard]] std::string implementation() const override { return "finch:concatenate"; }

private:
    [[nodiscard]] Grid grid() const { return grid_for(shape_.rows * (shape_.first + shape_.second)); }

    cudaStream_t stream_;
    ConcatenateShape shape_;
};

}  // namespace

template <>
std::unique_ptr<Operation> make(Stream& stream, const ConcatenateShape& shape) {
    return std::make_unique<ConcatenateOperation>(stream, shape);
}

}  // namespace finch::backend::cuda
