#include "finch/backend/operation.hpp"

#include "kernel_launch.hpp"
#include "kernels/numbers.hpp"
#include "number_of.hpp"
#include "operations.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace finch::backend::cuda {
namespace {

/// A PoolingShape with 32-bit numbers, because 32-bit division is faster.
struct PoolingSizes {
    int height, width, channels;
    int height_out, width_out;
    int kernel, stride, padding;
    int window;  ///< the number by which the sum over a window is divided

    /// Returns the offset of an element of x in NHWC. offset_out() returns that of an element of y.
    [[nodiscard]] FINCH_DEVICE std::int64_t offset(int sample, int row, int column, int channel) const {
        return ((static_cast<std::int64_t>(sample) * height + row) * width + column) * channels + channel;
    }
    [[nodiscard]] FINCH_DEVICE std::int64_t offset_out(int sample, int row, int column, int channel) const {
        return ((static_cast<std::int64_t>(sample) * height_out + row) * width_out + column) * channels + channel;
    }
};

/// The element that a thread computes: one channel of one pixel. Each row of pixels is divided among `parts` blocks.
struct PoolingPlace {
    int sample, row, column, channel;
    bool there;

    template <class Thread>
    FINCH_DEVICE PoolingPlace(const Thread& thread, int parts, int height, int width, int channels) {
        const int line = thread.block_x() / parts;
        const int element = thread.block_x() % parts * thread.count() + thread.index();
        sample = line / height;
        row = line % height;
        column = element / channels;
        channel = element % channels;
        there = column < width;
    }
};

/// The kernel that computes y (N, HO, WO, C), the largest entry of each window. If several entries are equal, the
/// kernel takes the first of them. A NaN is treated as the largest entry. `winners` has the shape of y and holds the
/// position of each largest entry in the image, as row · width + column. If `winners` is null, y is the mean over each
/// window; padding counts as zeros.
template <class X, class Y>
struct PoolingForward {
    static constexpr int max_threads = 256;
    PoolingSizes sizes;
    int parts;
    const X* x;
    Y* y;
    std::int32_t* winners;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const PoolingSizes s = sizes;
        const PoolingPlace place(thread, parts, s.height_out, s.width_out, s.channels);
        if (!place.there) {
            return;
        }
        const int top = place.row * s.stride - s.padding;
        const int left = place.column * s.stride - s.padding;
        float sum = 0.0F;
        float best = -INFINITY;
        std::int32_t winner = -1;
        const int bottom = top + s.kernel < s.height ? top + s.kernel : s.height;
        const int right = left + s.kernel < s.width ? left + s.kernel : s.width;  // a local: nvcc overlaps the reads
        for (int row = top < 0 ? 0 : top; row < bottom; ++row) {
            for (int column = left < 0 ? 0 : left; column < right; ++column) {
                const float value = static_cast<float>(x[s.offset(place.sample, row, column, place.channel)]);
                sum += value;
                if (winner < 0 || value > best || value != value) {
                    best = value;
                    winner = row * s.width + column;
                }
            }
        }
        const std::int64_t to = s.offset_out(place.sample, place.row, place.column, place.channel);
        y[to] = static_cast<Y>(winners == nullptr ? sum / static_cast<float>(s.window) : best);
        if (winners != nullptr) {
            winners[to] = winner;
        }
    }
};

/// The kernel for grad_x (N, H, W, C). Each entry of grad_x gets a part of the gradient of each window that contains
/// the entry, and is the sum of these parts. In max pooling the part is the whole gradient of the window if the entry
/// is the window's maximum, otherwise 0. In average pooling (`winners` is null) all entries of a window get equal
/// parts.
template <class X, class Y>
struct PoolingBackward {
    static constexpr int max_threads = 256;
    PoolingSizes sizes;
    int parts;
    const Y* grad_y;
    const std::int32_t* winners;
    X* grad_x;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const PoolingSizes& s = sizes;
        const PoolingPlace place(thread, parts, s.height, s.width, s.channels);
        if (!place.there) {
            return;
        }
        const std::int32_t self = place.row * s.width + place.column;
        float sum = 0.0F;
        for (int i = first_window(place.row); i <= last_window(place.row, s.height_out); ++i) {
            for (int j = first_window(place.column); j <= last_window(place.column, s.width_out); ++j) {
                const std::int64_t from = s.offset_out(place.sample, i, j, place.channel);
                sum += winners == nullptr || winners[from] == self ? static_cast<float>(grad_y[from]) : 0.0F;
            }
        }
        grad_x[s.offset(place.sample, place.row, place.column, place.channel)] =
            static_cast<X>(winners == nullptr ? sum / static_cast<float>(s.window) : sum);
    }

private:
    /// Returns the first window along one axis that contains `position`; last_window() returns the last window.
    [[nodiscard]] FINCH_DEVICE int first_window(int position) const {
        const int beyond = position + sizes.padding - sizes.kernel;  // the end of a window that just misses `position`
        return beyond < 0 ? 0 : beyond / sizes.stride + 1;
    }
    [[nodiscard]] FINCH_DEVICE int last_window(int position, int windows) const {
        const int last = (position + sizes.padding) / sizes.stride;
        return last < windows ? last : windows - 1;
    }
};

PoolingSizes sizes_of(const PoolingShape& shape) {
    const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
    return {.height = narrow(shape.height),
            .width = narrow(shape.width),
            .channels = narrow(shape.channels),
            .height_out = narrow(shape.height_out()),
            .width_out = narrow(shape.width_out()),
            .kernel = narrow(shape.kernel),
            .stride = narrow(shape.stride),
            .padding = narrow(shape.padding),
            .window = narrow(shape.kernel * shape.kernel)};
}

/// One window over all pixels, which are in one row.
PoolingSizes sizes_of(const MeanShape& shape) {
    const auto pixels = static_cast<int>(shape.pixels);
    return {.height = 1,
            .width = pixels,
            .channels = static_cast<int>(shape.channels),
            .height_out = 1,
            .width_out = 1,
            .kernel = pixels,
            .stride = 1,
            .padding = 0,
            .window = pixels};
}

/// A grid of blocks over rows of pixels, as PoolingPlace needs it.
struct RowGrid {
    Grid grid;
    int parts;

    RowGrid(std::int64_t rows, std::int64_t elements) {
        grid.threads = static_cast<int>(std::min<std::int64_t>(256, (elements + 31) / 32 * 32));
        parts = static_cast<int>((elements + grid.threads - 1) / grid.threads);
        grid.blocks_x = rows * parts;
    }
};

template <class X, class Y>
class PoolingOperation : public Operation {
public:
    PoolingOperation(Stream& stream, const PoolingSizes& sizes, std::int64_t batch, Pooling kind)
        : stream_(stream.get()),
          sizes_(sizes),
          out_(batch * sizes.height_out, std::int64_t{sizes.width_out} * sizes.channels),
          in_(batch * sizes.height, std::int64_t{sizes.width} * sizes.channels) {
        if (kind == Pooling::max) {
            const std::int64_t outputs = batch * sizes.height_out * sizes.width_out * sizes.channels;
            winners_ = stream.allocate(static_cast<std::size_t>(outputs) * sizeof(std::int32_t));
        }
    }

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        FINCH_CUDA(launch(stream_, out_.grid,
                          PoolingForward<X, Y>{.sizes = sizes_,
                                               .parts = out_.parts,
                                               .x = reinterpret_cast<const X*>(x[0]),
                                               .y = reinterpret_cast<Y*>(y),
                                               .winners = winners()}));
    }

    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        FINCH_CUDA(launch(stream_, in_.grid,
                          PoolingBackward<X, Y>{.sizes = sizes_,
                                                .parts = in_.parts,
                                                .grad_y = reinterpret_cast<const Y*>(grad_y),
                                                .winners = winners(),
                                                .grad_x = reinterpret_cast<X*>(grad_x[0])}));
    }

    [[nodiscard]] std::string implementation() const override { return "finch:pooling"; }

private:
    [[nodiscard]] std::int32_t* winners() const { return static_cast<std::int32_t*>(winners_.get()); }

    cudaStream_t stream_;
    PoolingSizes sizes_;
    RowGrid out_;           ///< over y
    RowGrid in_;            ///< over x
    StreamMemory winners_;  ///< of the last forward(); null for averages
};

std::unique_ptr<Operation> make_pooling(Stream& stream, const auto& shape, Pooling kind) {
    return with_number(shape.x_type, [&](auto x) {
        return with_number(shape.y_type, [&](auto y) -> std::unique_ptr<Operation> {
            return std::make_unique<PoolingOperation<typename decltype(x)::type, typename decltype(y)::type>>(
                stream, sizes_of(shape), shape.batch, kind);
        });
    });
}

}  // namespace

template <>
std::unique_ptr<Operation> make(Stream& stream, const PoolingShape& shape) {
    return make_pooling(stream, shape, shape.kind);
}
template <>
std::unique_ptr<Operation> make(Stream& stream, const MeanShape& shape) {
    return make_pooling(stream, shape, Pooling::average);
}

}  // namespace finch::backend::cuda
