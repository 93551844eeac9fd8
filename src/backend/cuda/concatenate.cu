#include "grid.hpp"
#include "kernel_launch.hpp"
#include "number_of.hpp"
#include "operations.hpp"

#include <cstdint>

namespace finch::backend::cuda {
namespace {

/// The kernel that computes y (rows, first + second) from `a` (rows, first) and `b` (rows, second).
template <class Number>
struct Concatenate {
    static constexpr int max_threads = 256;
    std::int64_t rows, first, second;
    const Number* a;
    const Number* b;
    Number* y;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t both = first + second;
        for (std::int64_t i = thread.global_index(); i < rows * both; i += thread.global_count()) {
            const std::int64_t row = i / both;
            const std::int64_t column = i % both;
            y[i] = column < first ? a[row * first + column] : b[row * second + column - first];
        }
    }
};

/// The inverse of Concatenate, for gradients: splits `grad_y` into `grad_a` and `grad_b`. `grad_a` and `grad_b` may be
/// null.
template <class Number>
struct Split {
    static constexpr int max_threads = 256;
    std::int64_t rows, first, second;
    const Number* grad_y;
    Number* grad_a;
    Number* grad_b;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t both = first + second;
        for (std::int64_t i = thread.global_index(); i < rows * both; i += thread.global_count()) {
            const std::int64_t row = i / both;
            const std::int64_t column = i % both;
            if (column < first && grad_a != nullptr) {
                grad_a[row * first + column] = grad_y[i];
            } else if (column >= first && grad_b != nullptr) {
                grad_b[row * second + column - first] = grad_y[i];
            }
        }
    }
};

template <class Number>
class ConcatenateOperation : public Operation {
public:
    ConcatenateOperation(Stream& stream, const ConcatenateShape& shape) : stream_(stream.get()), shape_(shape) {}

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        FINCH_CUDA(launch(stream_, grid(),
                          Concatenate<Number>{.rows = shape_.rows,
                                              .first = shape_.first,
                                              .second = shape_.second,
                                              .a = numbers(x[0]),
                                              .b = numbers(x[1]),
                                              .y = numbers(y)}));
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        FINCH_CUDA(launch(stream_, grid(),
                          Split<Number>{.rows = shape_.rows,
                                        .first = shape_.first,
                                        .second = shape_.second,
                                        .grad_y = numbers(grad_y),
                                        .grad_a = numbers(grad_x[0]),
                                        .grad_b = numbers(grad_x[1])}));
    }
    [[nodiscard]] std::string implementation() const override { return "finch:concatenate"; }

private:
    [[nodiscard]] static const Number* numbers(const float* x) { return reinterpret_cast<const Number*>(x); }
    [[nodiscard]] static Number* numbers(float* x) { return reinterpret_cast<Number*>(x); }
    [[nodiscard]] Grid grid() const { return grid_for(shape_.rows * (shape_.first + shape_.second)); }

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
