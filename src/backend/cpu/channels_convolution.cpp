#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "elementwise.hpp"
#include "gradient_sums.hpp"
#include "kernels.hpp"
#include "own_convolution.hpp"
#include "slices.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace finch::backend::cpu {
namespace {

ConvolutionPass pass_of(const ConvolutionShape& shape, std::int64_t tile, bool to_input_gradient) {
    ConvolutionPass pass{.height = shape.height,
                         .width = shape.width,
                         .channels = shape.channels_in,
                         .height_out = shape.height_out(),
                         .width_out = shape.width_out(),
                         .channels_out = shape.channels_out,
                         .padding = shape.padding_before};
    if (to_input_gradient) {
        std::swap(pass.height, pass.height_out);
        std::swap(pass.width, pass.width_out);
        std::swap(pass.channels, pass.channels_out);
        pass.padding = 2 - pass.padding;
    }
    pass.tile_rows = (pass.height_out + tile - 1) / tile;
    pass.tile_columns = (pass.width_out + tile - 1) / tile;
    return pass;
}

class ChannelsConvolution : public Operation {
public:
    ChannelsConvolution(const ConvolutionShape& shape, const ChannelsKernels& kernels)
        : shape_(shape),
          kernels_(kernels),
          forward_(pass_of(shape, kernels.tile, false)),
          backward_(pass_of(shape, kernels.tile, true)),
          forward_weights_(kernels.packed_floats(forward_)),
          backward_weights_(shape.needs_input_grad ? kernels.packed_floats(backward_) : 0),
          sums_(kernels.sums_floats(forward_)) {}

    void pack(const float* parameters, float* /*buffers*/) override {
        parameters_ = parameters;
        kernels_.pack(forward_, parameters, false, forward_weights_.data());
        if (shape_.needs_input_grad) {
            kernels_.pack(backward_, parameters, true, backward_weights_.data());
        }
    }

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        const bool has_relu = shape_.activation == Activation::relu;
        run(forward_, x[0], forward_weights_.data(), parameters_ + shape_.weights(), has_relu, y);
        if (!has_relu) {
            apply_activation(shape_.activation, y, y, outputs());
        }
    }

    void backward(const Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        const bool has_relu = shape_.activation == Activation::relu;
        if (!has_relu) {
            apply_derivative(shape_.activation, y, grad_y, outputs());
        }
        sums_.add(pass, tiles_of(forward_), [&](std::int64_t first, std::int64_t behind, float* sums) {
            kernels_.add_gradient(forward_, x[0], has_relu ? y : nullptr, grad_y, first, behind, sums,
                                  workspace(kernels_.scratch_floats(forward_)));
        });
        if (pass.is_last_block) {
            kernels_.write_gradient(forward_, sums_.total(), grad_parameters, grad_parameters + shape_.weights());
        }
        if (shape_.needs_input_grad) {
            run(backward_, grad_y, backward_weights_.data(), nullptr, false, grad_x[0]);
        }
    }
    [[nodiscard]] std::string implementation() const override {
        return std::string("finch:winograd") + (kernels_.tile == 2 ? "_2x2:" : "_4x4:") + kernels().name;
    }

private:
    [[nodiscard]] std::size_t outputs() const {
        return static_cast<std::size_t>(shape_.batch * shape_.height_out() * shape_.width_out() * shape_.channels_out);
    }
    [[nodiscard]] std::int64_t tiles_of(const ConvolutionPass& pass) const {
        return shape_.batch * pass.tile_rows * pass.tile_columns;
    }
    void run(const ConvolutionPass& pass, const float* from, const float* packed, const float* bias, bool has_relu,
             float* to) const {
        for_slices(tiles_of(pass), 1, [&](std::size_t /*slice*/, std::int64_t first, std::int64_t behind) {
            kernels_.run(pass, from, packed, bias, has_relu, to, first, behind,
                         workspace(kernels_.scratch_floats(pass)));
        });
    }

    ConvolutionShape shape_;
    const ChannelsKernels& kernels_;
    ConvolutionPass forward_, backward_;
    AlignedFloats forward_weights_, backward_weights_;
    GradientSums sums_;
    const float* parameters_ = nullptr;  ///< canonical; the bias is read from here
};

/// Returns the products per channel that the tiles of an image need.
std::int64_t products_of(const ConvolutionShape& shape, std::int64_t tile) {
    const auto tiles = [&](std::int64_t pixels) { return (pixels + tile - 1) / tile; };
    return tiles(shape.height_out()) * tiles(shape.width_out()) * (tile + 2) * (tile + 2);
}

/// Returns the kernels for a shape; null if the shape is not suitable.
const ChannelsKernels* kernels_for(const ConvolutionShape& shape) {
    if (!is_own_shape(shape) || std::min(shape.channels_in, shape.channels_out) < least_channels_of_vectors) {
        return nullptr;
    }
    const bool has_large_tiles = may_use_large_tiles() && products_of(shape, 4) <= products_of(shape, 2);
    return has_large_tiles ? &kernels().channels_4 : &kernels().channels_2;
}

}  // namespace

bool may_use_large_tiles() {
    static const bool may = [] {
        const char* const most = std::getenv("FINCH_WINOGRAD_TILE");
        if (most != nullptr && std::string_view(most) != "2" && std::string_view(most) != "4") {
            throw ConfigError(fmt::format("FINCH_WINOGRAD_TILE is \"{}\"; it must be 2 or 4", most));
        }
        return most == nullptr || std::string_view(most) == "4";
    }();
    return may;
}

std::optional<OwnMemory> channels_memory(const ConvolutionShape& shape) {
    const ChannelsKernels* const own = kernels_for(shape);
    if (own == nullptr) {
        return std::nullopt;
    }
    const ConvolutionPass forward = pass_of(shape, own->tile, false);
    const ConvolutionPass backward = pass_of(shape, own->tile, true);
    return OwnMemory{.kept = own->packed_floats(forward) + own->packed_floats(backward) + own->sums_floats(forward),
                     .scratch = std::max(own->scratch_floats(forward), own->scratch_floats(backward))};
}

std::unique_ptr<Operation> make_channels_convolution(const ConvolutionShape& shape) {
    const ChannelsKernels* const own = kernels_for(shape);
    return own != nullptr ? std::make_unique<ChannelsConvolution>(shape, *own) : nullptr;
}

}  // namespace finch::backend::cpu
