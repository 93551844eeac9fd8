#include "grid.hpp"
#include "kernel_launch.hpp"
#include "number_of.hpp"
#include "operations.hpp"

#include <cstdint>

namespace finch::backend::cuda {
namespace {

/// The kernel that copies `a` (rows, first) and `b` (rows, second) to `y` (rows, first + second) or, if `splits`, y to
/// a and b, which may then be null.
template <class Number>
struct Concatenate {
    static constexpr int max_threads = 256;
    std::int64_t rows, first, second;
    Number* a;
    Number* b;
    Number* y;
    bool splits;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t both = first + second;
        for (std::int64_t i = thread.global_index(); i < rows * both; i += thread.global_count()) {
            const std::int64_t row = i / both;
            const std::int64_t column = i % both;
            Number* const part = column < first ? a : b;
            const std::int64_t at = column < first ? row * first + column : row * second + column - first;
            if (!splits) {
                y[i] = part[at];
            } else if (part != nullptr) {
                part[at] = y[i];
            }
        }
    }
};

template <class Number>
class ConcatenateOperation : public Operation {
public:
    ConcatenateOperation(Stream& stream, const ConcatenateShape& shape) : stream_(stream.get()), shape_(shape) {}

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        copy(const_cast<float*>(x[0]), const_cast<float*>(x[1]), y, false);
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        copy(grad_x[0], grad_x[1], grad_y, true);
    }
    [[nodiscard]] std::string implementation() const override { return "finch:concatenate"; }

private:
    void copy(float* a, float* b, float* y, bool splits) const {
        FINCH_CUDA(launch(stream_, grid_for(shape_.rows * (shape_.first + shape_.second)),
                          Concatenate<Number>{.rows = shape_.rows,
                                              .first = shape_.first,
                                              .second = shape_.second,
                                              .a = reinterpret_cast<Number*>(a),
                                              .b = reinterpret_cast<Number*>(b),
                                              .y = reinterpret_cast<Number*>(y),
                                              .splits = splits}));
    }

    cudaStream_t stream_;
    ConcatenateShape shape_;
};

}  // namespace

template <>
std::unique_ptr<Operation> make(Stream& stream, const ConcatenateShape& shape) {
    return with_number(shape.x_type, [&](auto number) -> std::unique_ptr<Operation> {
        return std::make_unique<ConcatenateOperation<typename decltype(number)::type>>(stream, shape);
    });
}

}  // namespace finch::backend::cuda
