#include "operations.hpp"
#include "slices.hpp"
#include "vectorised.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace finch::backend::cpu {
namespace {

constexpr std::int32_t none = -1;  ///< the place of a maximum before the first pixel of a window

/// Takes up a pixel at `place` of a window into the maxima of all channels. NaN is larger than any number. Of equal
/// pixels the first one is the maximum, as in PyTorch.
FINCH_VECTORISED void take_maximum(const float* __restrict x, std::int32_t place, float* __restrict y,
                                   std::int32_t* __restrict places, std::int64_t channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
        const bool is_larger = (places[c] == none) | (x[c] > y[c]) | (x[c] != x[c]);
        y[c] = is_larger ? x[c] : y[c];
        places[c] = is_larger ? place : places[c];
    }
}

/// Adds the gradients of the windows whose maximum is at `place`.
FINCH_VECTORISED void add_where(const float* __restrict grad_y, const std::int32_t* __restrict places,
                                std::int32_t place, float* __restrict grad_x, std::int64_t channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
        grad_x[c] += places[c] == place ? grad_y[c] : 0.0F;
    }
}

FINCH_VECTORISED void add_share(const float* __restrict from, float share, float* __restrict to,
                                std::int64_t channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
        to[c] += share * from[c];
    }
}

class PoolingOperation : public Operation {
public:
    explicit PoolingOperation(const PoolingShape& shape)
        : shape_(shape),
          share_(1.0F / static_cast<float>(shape.kernel * shape.kernel)),
          places_(static_cast<std::size_t>(shape.saved_floats())) {}

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        const bool is_max = shape_.kind == Pooling::max;
        for_rows([&](std::int64_t row) {
            const std::int64_t outputs = shape_.width_out() * shape_.channels;
            std::fill_n(y + row * outputs, outputs, 0.0F);
            if (is_max) {
                std::fill_n(places_.data() + row * outputs, outputs, none);
            }
            for_windows(row, [&](std::int64_t output, std::int64_t pixel, std::int32_t place) {
                if (is_max) {
                    take_maximum(x[0] + pixel, place, y + output, places_.data() + output, shape_.channels);
                } else {
                    add_share(x[0] + pixel, share_, y + output, shape_.channels);
                }
            });
        });
    }

    /// The windows of a sample may overlap, so a thread takes whole samples.
    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        const std::int64_t size = shape_.height * shape_.width * shape_.channels;
        for_slices(shape_.batch, 1, [&](std::size_t /*slice*/, std::int64_t begin, std::int64_t end) {
            std::fill_n(grad_x[0] + begin * size, (end - begin) * size, 0.0F);
            for (std::int64_t row = begin * shape_.height_out(); row < end * shape_.height_out(); ++row) {
                for_windows(row, [&](std::int64_t output, std::int64_t pixel, std::int32_t place) {
                    if (shape_.kind == Pooling::max) {
                        add_where(grad_y + output, places_.data() + output, place, grad_x[0] + pixel, shape_.channels);
                    } else {
                        add_share(grad_y + output, share_, grad_x[0] + pixel, shape_.channels);
                    }
                });
            }
        });
    }
    [[nodiscard]] std::string implementation() const override { return "finch:loop"; }

private:
    /// Calls work(row) for each row of outputs of the batch.
    template <class Work>
    void for_rows(Work work) const {
        for_slices(shape_.batch * shape_.height_out(), 1,
                   [&](std::size_t /*slice*/, std::int64_t begin, std::int64_t end) {
                       for (std::int64_t row = begin; row < end; ++row) {
                           work(row);
                       }
                   });
    }

    /// Calls work(offset of the output, offset of the pixel, place in the window) for each pixel of each window of a
    /// row of outputs. Pixels of the padding are left out.
    template <class Work>
    void for_windows(std::int64_t row, Work work) const {
        const std::int64_t sample = row / shape_.height_out();
        const std::int64_t top = row % shape_.height_out() * shape_.stride - shape_.padding;
        const std::int64_t rows_behind = std::min(shape_.kernel, shape_.height - top);
        for (std::int64_t column = 0; column < shape_.width_out(); ++column) {
            const std::int64_t left = column * shape_.stride - shape_.padding;
            const std::int64_t columns_behind = std::min(shape_.kernel, shape_.width - left);
            for (std::int64_t r = std::max<std::int64_t>(0, -top); r < rows_behind; ++r) {
                for (std::int64_t s = std::max<std::int64_t>(0, -left); s < columns_behind; ++s) {
                    work((row * shape_.width_out() + column) * shape_.channels,
                         ((sample * shape_.height + top + r) * shape_.width + left + s) * shape_.channels,
                         static_cast<std::int32_t>(r * shape_.kernel + s));
                }
            }
        }
    }

    PoolingShape shape_;
    float share_;
    std::vector<std::int32_t> places_;  ///< of the maximum in each window; empty for averages
};

}  // namespace

template <>
std::unique_ptr<Operation> make(const Library& /*library*/, Plans& /*plans*/, const PoolingShape& shape) {
    return std::make_unique<PoolingOperation>(shape);
}

}  // namespace finch::backend::cpu
