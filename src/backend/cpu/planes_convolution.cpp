#include "finch/backend/planes.hpp"
#include "finch/base/error.hpp"

#include "elementwise.hpp"
#include "gradient_sums.hpp"
#include "kernels.hpp"
#include "own_convolution.hpp"
#include "slices.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace finch::backend::cpu {
namespace {

/// An image in planes, with the table of the outputs that lie in the image.
class PlanesImage {
public:
    PlanesImage(std::int64_t height, std::int64_t width)
        : size_(height, width), inside_(static_cast<std::size_t>(size_.floats_per_channel())) {
        for (std::int64_t tile = 0; tile < size_.tiles; ++tile) {
            for (std::int64_t output = 0; output < 4; ++output) {
                const bool is_inside =
                    2 * (tile / size_.pitch) + output / 2 < height && 2 * (tile % size_.pitch) + output % 2 < width;
                inside_[static_cast<std::size_t>(output * size_.plane + tile)] = is_inside ? -1 : 0;
            }
        }
    }
    [[nodiscard]] PlanesGeometry geometry() const {
        return {.pitch = size_.pitch, .tiles = size_.tiles, .plane = size_.plane, .inside = inside_.data()};
    }
    [[nodiscard]] std::int64_t floats(std::int64_t channels) const { return channels * size_.floats_per_channel(); }

private:
    PlanesSize size_;
    std::vector<std::int32_t> inside_;
};

/// One sample of a tensor: in planes, or in NHWC with memory for a copy in planes.
struct Sample {
    Layout layout;
    std::int64_t height, width, channels;

    [[nodiscard]] std::int64_t floats(const PlanesImage& image) const {
        return layout == Layout::planes ? image.floats(channels) : height * width * channels;
    }
};

std::int64_t packed_floats(const ConvolutionShape& shape) {
    return 16 * shape.channels_in * shape.channels_out;
}

class PlanesConvolution : public Operation {
public:
    explicit PlanesConvolution(const ConvolutionShape& shape)
        : shape_(shape),
          kernels_(kernels().planes),
          image_(shape.height_out(), shape.width_out()),
          grad_image_(shape.height, shape.width),
          forward_{shape.channels_in, shape.channels_out, image_.geometry()},
          backward_{shape.channels_out, shape.channels_in, grad_image_.geometry()},
          x_{shape.x_layout, shape.height, shape.width, shape.channels_in},
          y_{shape.y_layout, shape.height_out(), shape.width_out(), shape.channels_out},
          forward_weights_(packed_floats(shape)),
          backward_weights_(shape.needs_input_grad ? packed_floats(shape) : 0),
          sums_(kernels_.sums_floats(forward_)),
          scratch_floats_(memory_of(shape).scratch) {}

    void pack(const float* parameters, float* /*buffers*/) override {
        parameters_ = parameters;
        kernels_.pack(forward_, parameters, false, forward_weights_.data());
        if (shape_.needs_input_grad) {
            kernels_.pack(backward_, parameters, true, backward_weights_.data());
        }
    }

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        for_slices(shape_.batch, 1, [&](std::size_t /*slice*/, std::int64_t begin, std::int64_t end) {
            float* const memory = workspace(scratch_floats_);
            for (std::int64_t n = begin; n < end; ++n) {
                compute_sample(x[0], y, n, memory);
            }
        });
    }

    void backward(const Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        sums_.add(pass, shape_.batch, [&](std::int64_t begin, std::int64_t end, float* sums) {
            float* const memory = workspace(scratch_floats_);
            for (std::int64_t n = begin; n < end; ++n) {
                const float* const grad = add_sample(x[0], y, grad_y, n, sums, memory);
                if (shape_.needs_input_grad) {
                    write_grad_x(grad, grad_y, grad_x[0], n, memory);
                }
            }
        });
        if (pass.is_last_block) {
            kernels_.write_gradient(forward_, sums_.total(), grad_parameters, grad_parameters + shape_.weights());
        }
    }
    [[nodiscard]] static OwnMemory memory_of(const ConvolutionShape& shape) {
        const PlanesKernels& own = kernels().planes;
        const PlanesImage image(shape.height_out(), shape.width_out());
        const PlanesImage grad_image(shape.height, shape.width);
        const PlanesPass forward{shape.channels_in, shape.channels_out, image.geometry()};
        const PlanesPass backward{shape.channels_out, shape.channels_in, grad_image.geometry()};
        return {.kept = 2 * packed_floats(shape) + own.sums_floats(forward),
                .scratch = std::max(image.floats(1), grad_image.floats(1)) * (shape.channels_in + shape.channels_out) +
                           std::max(own.scratch_floats(forward), own.scratch_floats(backward))};
    }
    [[nodiscard]] std::string implementation() const override { return std::string("finch:planes:") + kernels().name; }

private:
    /// Returns sample `n` of `tensor` in planes: in place, or as a copy in `memory`.
    const float* in_planes(const Sample& tensor, const PlanesImage& image, std::int64_t padding, const float* values,
                           std::int64_t n, float* memory) const {
        const float* const sample = values + n * tensor.floats(image);
        if (tensor.layout == Layout::planes) {
            return sample;
        }
        kernels_.fill(image.geometry(), padding, tensor.height, tensor.width, tensor.channels, sample, memory);
        return memory;
    }

    void compute_sample(const float* x, float* y, std::int64_t n, float* memory) const {
        const bool has_relu = shape_.activation == Activation::relu;
        float* const scratch = memory + image_.floats(x_.channels) + image_.floats(y_.channels);
        const float* const from = in_planes(x_, image_, shape_.padding_before, x, n, memory);
        float* const out = y + n * y_.floats(image_);
        float* const to = y_.layout == Layout::planes ? out : memory + image_.floats(x_.channels);
        kernels_.run(forward_, from, forward_weights_.data(), parameters_ + shape_.weights(), has_relu, to, scratch);
        if (y_.layout == Layout::nhwc) {
            kernels_.read(forward_.geometry, y_.height, y_.width, y_.channels, to, out);
            if (!has_relu) {
                apply_activation(shape_.activation, out, out, static_cast<std::size_t>(y_.floats(image_)));
            }
        }
    }

    /// Adds a sample to the sums. Returns the gradient of its y before the activation, in planes.
    const float* add_sample(const float* x, const float* y, float* grad_y, std::int64_t n, float* sums,
                            float* memory) const {
        float* const scratch = memory + image_.floats(x_.channels) + image_.floats(y_.channels);
        const std::int64_t size = y_.floats(image_);
        const bool has_relu = shape_.activation == Activation::relu;
        const float* const from = in_planes(x_, image_, shape_.padding_before, x, n, memory);
        if (y_.layout == Layout::planes) {
            kernels_.add_gradient(forward_, from, has_relu ? y + n * size : nullptr, grad_y + n * size, sums, scratch);
            return grad_y + n * size;
        }
        apply_derivative(shape_.activation, y + n * size, grad_y + n * size, static_cast<std::size_t>(size));
        float* const grad = memory + image_.floats(x_.channels);
        kernels_.fill(forward_.geometry, 1, y_.height, y_.width, y_.channels, grad_y + n * size, grad);
        kernels_.add_gradient(forward_, from, nullptr, grad, sums, scratch);
        return grad;
    }

    /// Writes the gradient of x of a sample. `grad` is that of add_sample(). It can be used if x and y have equal
    /// sizes; otherwise the gradient of y is converted with another padding.
    void write_grad_x(const float* grad, const float* grad_y, float* grad_x, std::int64_t n, float* memory) const {
        float* const scratch = memory + grad_image_.floats(x_.channels) + grad_image_.floats(y_.channels);
        float* const copy = memory + grad_image_.floats(x_.channels);
        if (shape_.padding_before != 1 || shape_.padding_after != 1) {
            grad = in_planes(y_, grad_image_, 2 - shape_.padding_before, grad_y, n, copy);
        }
        float* const out = grad_x + n * x_.floats(grad_image_);
        float* const to = x_.layout == Layout::planes ? out : memory;
        kernels_.run(backward_, grad, backward_weights_.data(), nullptr, false, to, scratch);
        if (x_.layout == Layout::nhwc) {
            kernels_.read(backward_.geometry, x_.height, x_.width, x_.channels, to, out);
        }
    }

    ConvolutionShape shape_;
    const PlanesKernels& kernels_;
    PlanesImage image_, grad_image_;  ///< of y and its gradient; of the gradient of x
    PlanesPass forward_, backward_;
    Sample x_, y_;
    AlignedFloats forward_weights_, backward_weights_;
    GradientSums sums_;
    std::int64_t scratch_floats_;        ///< of one thread: copies in planes, and the scratch memory of a kernel
    const float* parameters_ = nullptr;  ///< canonical; the bias is read from here
};

/// True if few lanes of the kernels are idle. The limits were measured for 1 to 40 channels on 4 × 4 to 112 × 112
/// pixels (tools/bench/operations.py).
bool is_fast(const ConvolutionShape& shape) {
    const double least_use = kernels().lanes == 16 ? 0.8 : 0.6;
    const PlanesSize size(shape.height_out(), shape.width_out());
    const std::int64_t whole = (size.tiles + PlanesSize::block - 1) / PlanesSize::block * PlanesSize::block;
    const auto pixels = static_cast<double>(shape.height_out() * shape.width_out());
    return std::min(shape.channels_in, shape.channels_out) < least_channels_of_vectors && shape.channels_out >= 4 &&
           pixels / 4 >= least_use * static_cast<double>(whole);
}

bool computes_in_planes(const ConvolutionShape& shape) {
    if (shape.x_layout == Layout::nhwc && shape.y_layout == Layout::nhwc) {
        return is_own_shape(shape) && is_fast(shape) && shape.channels_in >= 4;
    }
    if (!is_own_shape(shape) || shape.padding_before != 1 || shape.padding_after != 1 ||
        (shape.y_layout == Layout::planes && shape.activation != Activation::none &&
         shape.activation != Activation::relu)) {
        throw Error("this convolution cannot have activations in planes");
    }
    return true;
}

}  // namespace

bool prefers_planes(const ConvolutionShape& shape) {
    return is_own_shape(shape) && is_fast(shape) && shape.padding_before == 1 && shape.padding_after == 1;
}

std::unique_ptr<Operation> make_planes_convolution(const ConvolutionShape& shape) {
    return computes_in_planes(shape) ? std::make_unique<PlanesConvolution>(shape) : nullptr;
}

std::optional<OwnMemory> planes_memory(const ConvolutionShape& shape) {
    return computes_in_planes(shape) ? std::optional(PlanesConvolution::memory_of(shape)) : std::nullopt;
}

}  // namespace finch::backend::cpu
