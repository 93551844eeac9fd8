#include "operations.hpp"
#include "slices.hpp"

#include <algorithm>

namespace finch::backend::cpu {
namespace {

constexpr std::int64_t rows_of_slice = 64;  ///< minimum rows per thread

class ConcatenateOperation : public Operation {
public:
    explicit ConcatenateOperation(const ConcatenateShape& shape) : shape_(shape) {}

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        for_rows([&](std::int64_t row, std::int64_t of_y) {
            std::copy_n(x[0] + row * shape_.first, shape_.first, y + of_y);
            std::copy_n(x[1] + row * shape_.second, shape_.second, y + of_y + shape_.first);
        });
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        for_rows([&](std::int64_t row, std::int64_t of_y) {
            if (grad_x[0] != nullptr) {
                std::copy_n(grad_y + of_y, shape_.first, grad_x[0] + row * shape_.first);
            }
            if (grad_x[1] != nullptr) {
                std::copy_n(grad_y + of_y + shape_.first, shape_.second, grad_x[1] + row * shape_.second);
            }
        });
    }
    [[nodiscard]] std::string implementation() const override { return "finch:loop"; }

private:
    /// Calls `work(row, offset of the row in y)` for each row.
    template <class Work>
    void for_rows(Work work) const {
        for_slices(shape_.rows, rows_of_slice, [&](std::size_t /*slice*/, std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; ++row) {
                work(row, row * (shape_.first + shape_.second));
            }
        });
    }

    ConcatenateShape shape_;
};

}  // namespace

template <>
std::unique_ptr<Operation> make(const Library& /*library*/, Plans& /*plans*/, const ConcatenateShape& shape) {
    return std::make_unique<ConcatenateOperation>(shape);
}

}  // namespace finch::backend::cpu
