#include "grid.hpp"
#include "kernel_launch.hpp"
#include "kernels/numbers.hpp"
#include "number_of.hpp"
#include "operations.hpp"

#include <cstdint>

namespace finch::backend::cuda {
namespace {

// The mean over the pixels of (batch, pixels, channels).

/// The kernel that computes the means y (batch, channels).
template <class X, class Y>
struct MeanForward {
    static constexpr int max_threads = 256;
    std::int64_t batch, pixels, channels;
    const X* x;
    Y* y;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < batch * channels; i += thread.global_count()) {
            const X* from = x + i / channels * pixels * channels + i % channels;
            float sum = 0.0F;
            for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
                sum += convert<float>(from[pixel * channels]);
            }
            y[i] = convert<Y>(sum / static_cast<float>(pixels));
        }
    }
};

template <class X, class Y>
struct MeanBackward {
    static constexpr int max_threads = 256;
    std::int64_t batch, pixels, channels;
    const Y* grad_y;
    X* grad_x;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t sample = pixels * channels;
        for (std::int64_t i = thread.global_index(); i < batch * sample; i += thread.global_count()) {
            grad_x[i] =
                convert<X>(convert<float>(grad_y[i / sample * channels + i % channels]) / static_cast<float>(pixels));
        }
    }
};

template <class X, class Y>
class MeanOperation : public Operation {
public:
    MeanOperation(Stream& stream, const MeanShape& shape) : stream_(stream.get()), shape_(shape) {}

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        FINCH_CUDA(launch(stream_, grid_for(shape_.batch * shape_.channels),
                          MeanForward<X, Y>{.batch = shape_.batch,
                                            .pixels = shape_.pixels,
                                            .channels = shape_.channels,
                                            .x = reinterpret_cast<const X*>(x[0]),
                                            .y = reinterpret_cast<Y*>(y)}));
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        FINCH_CUDA(launch(stream_, grid_for(shape_.batch * shape_.pixels * shape_.channels),
                          MeanBackward<X, Y>{.batch = shape_.batch,
                                             .pixels = shape_.pixels,
                                             .channels = shape_.channels,
                                             .grad_y = reinterpret_cast<const Y*>(grad_y),
                                             .grad_x = reinterpret_cast<X*>(grad_x[0])}));
    }
    [[nodiscard]] std::string implementation() const override { return "finch:mean"; }

private:
    cudaStream_t stream_;
    MeanShape shape_;
};

}  // namespace

template <>
std::unique_ptr<Operation> make(Stream& stream, const MeanShape& shape) {
    return with_number(shape.x_type, [&](auto x) {
        return with_number(shape.y_type, [&](auto y) -> std::unique_ptr<Operation> {
            return std::make_unique<MeanOperation<typename decltype(x)::type, typename decltype(y)::type>>(stream,
                                                                                                           shape);
        });
    });
}

}  // namespace finch::backend::cuda
