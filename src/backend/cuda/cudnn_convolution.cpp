#include "engine_choice.hpp"
#include "layout.hpp"
#include "operations.hpp"

#include <algorithm>
#include <utility>

namespace finch::backend::cuda {

/// The plans that cuDNN chose for the passes of a convolution shape. All operations of the shape share the plans.
struct CudnnConvolutionPlan {
    EngineChoice forward, data, weights;
};

namespace {

std::shared_ptr<CudnnConvolutionPlan> plan_for(Stream& stream, const ConvolutionShape& shape) {
    Libraries& libraries = stream.libraries();
    return libraries.convolutions.get(shape, [&] {
        CudnnConvolutionPlan plan{.forward = choose_engine(libraries, ConvolutionPass::forward, shape),
                                  .data = {},
                                  .weights = choose_engine(libraries, ConvolutionPass::weight_gradient, shape)};
        if (shape.needs_input_grad) {
            plan.data = choose_engine(libraries, ConvolutionPass::data_gradient, shape);
        }
        return plan;
    });
}

/// The offsets in the scratch memory at which a pass finds its copies of tensors.
struct Places {
    std::size_t x = 0, y = 0, workspace = 0, size = 0;
};

std::size_t bytes_of(TensorType type) {
    return type == TensorType::float32 ? 4 : 2;
}

std::size_t elements(std::int64_t pixels, std::int64_t channels) {
    return static_cast<std::size_t>(pixels * channels);
}

std::int64_t pixels_in(const ConvolutionShape& s) {
    return s.batch * s.height * s.width;
}
std::int64_t pixels_out(const ConvolutionShape& s) {
    return s.batch * s.height_out() * s.width_out();
}
std::size_t weight_elements(const ConvolutionShape& s) {
    return static_cast<std::size_t>(s.weights());
}

/// True if a pass uses the caller's buffer directly, because the pass needs the type, the channels and the size that
/// the shape has.
bool takes_x(const EngineChoice& choice, const ConvolutionShape& shape) {
    return choice.request.type == shape.x_type && choice.padded_in() == shape.channels_in && !pads_images(shape);
}
bool takes_y(const EngineChoice& choice, const ConvolutionShape& shape) {
    return choice.request.type == shape.y_type && choice.padded_out() == shape.channels_out;
}

Places places_of(const EngineChoice& choice, const ConvolutionShape& shape) {
    if (!choice.pass) {
        return {};  // no gradient of the input is needed
    }
    const ConvolutionShape& s = choice.request.shape;
    Places places;
    const auto take = [&](std::size_t bytes) {  // aligned
        return std::exchange(places.size, places.size + (bytes + 255) / 256 * 256);
    };
    if (!takes_x(choice, shape)) {
        places.x = take(bytes_of(choice.request.type) * elements(pixels_in(s), s.channels_in));
    }
    if (!takes_y(choice, shape)) {
        places.y = take(bytes_of(choice.request.type) * elements(pixels_out(s), s.channels_out));
    }
    places.workspace = take(choice.pass->workspace_bytes());
    return places;
}

std::size_t scratch_bytes_of(const CudnnConvolutionPlan& plan, const ConvolutionShape& shape) {
    return std::max({places_of(plan.forward, shape).size, places_of(plan.data, shape).size,
                     places_of(plan.weights, shape).size, std::size_t{16}});
}

/// Returns the bytes of the packed gradients of the weights.
std::size_t grad_bytes_of(const CudnnConvolutionPlan& plan) {
    return weight_elements(plan.weights.request.shape) * bytes_of(plan.weights.request.type);
}
std::size_t bias_partials_of(const ConvolutionShape& shape) {
    return shape.skips_bias ? 0 : bias_gradient_partials(pixels_out(shape), shape.channels_out);
}

class CudnnConvolution : public Operation {
public:
    CudnnConvolution(Stream& stream, const ConvolutionShape& shape)
        : stream_(stream),
          shape_(shape),
          plan_(plan_for(stream, shape)),
          weights_(weight_elements(shape)),
          forward_places_(places_of(plan_->forward, shape)),
          data_places_(places_of(plan_->data, shape)),
          weight_places_(places_of(plan_->weights, shape)) {
        scratch_ = stream.scratch(scratch_bytes_of(*plan_, shape));
        packed_grads_ = stream.allocate(grad_bytes_of(*plan_));
        bias_partials_ = stream.allocate(bias_partials_of(shape));
        allocate_packed(plan_->forward, packed_forward_);
        if (!data_takes_forwards_weights()) {
            allocate_packed(plan_->data, packed_data_);
        }
        if (plan_->forward.request.is_fused) {
            bias_copy_ = stream.allocate(static_cast<std::size_t>(plan_->forward.padded_out()) * sizeof(float));
        }
    }

    ~CudnnConvolution() override {
        for (const StreamMemory* memory : {&packed_forward_, &packed_data_, &packed_grads_, &bias_partials_}) {
            stream_.deferred().forget(memory->get());
        }
    }
    CudnnConvolution(const CudnnConvolution&) = delete;
    CudnnConvolution& operator=(const CudnnConvolution&) = delete;

    void pack(const float* parameters, float* /*buffers*/) override {
        parameters_ = parameters;
        pack_for(plan_->forward, packed_forward_);
        pack_for(plan_->data, packed_data_);
        pack_bias(parameters + weights_);
    }

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        finish_packing(stream_);
        const EngineChoice& choice = plan_->forward;
        const bool is_fused = choice.request.is_fused;
        const float* bias = is_fused || shape_.skips_bias ? nullptr : parameters_ + weights_;
        void* to = takes_y(choice, shape_) ? y : at(forward_places_.y);
        choice.pass->run(stream_.get(),
                         {.x = x_for_engine(choice, forward_places_, x[0]),
                          .weights = packed_forward_.get(),
                          .bias = fused_bias_,
                          .y = to},
                         at(forward_places_.workspace));
        if (to != y || bias != nullptr) {
            bias_activation(stream_.get(), is_fused ? Activation::none : shape_.activation, {to, choice.request.type},
                            choice.padded_out(), bias, {y, shape_.y_type}, pixels_out(shape_), shape_.channels_out);
        }
    }

    void backward(const Pass& /*pass*/, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        finish_packing(stream_);
        if (!shape_.skips_bias) {
            stream_.deferred().sums.push_back(bias_gradient(
                stream_.get(), shape_.activation, {y, shape_.y_type}, {grad_y, shape_.y_type}, pixels_out(shape_),
                shape_.channels_out, static_cast<float*>(bias_partials_.get()), grad_parameters + weights_));
        }
        backward_weights(x[0], grad_y, grad_parameters);
        if (shape_.needs_input_grad) {
            backward_data(grad_y, grad_x[0]);
        }
    }

    [[nodiscard]] bool defers_grads() const override { return true; }
    [[nodiscard]] std::string implementation() const override {
        return plan_->forward.name + "; " + plan_->weights.name +
               (shape_.needs_input_grad ? "; " + plan_->data.name : "");
    }

private:
    /// Copies the bias if it needs padding or is not aligned as cuDNN requires.
    void pack_bias(const float* bias) {
        if (!bias_copy_) {
            return;
        }
        const bool is_aligned = reinterpret_cast<std::uintptr_t>(bias) % 16 == 0;
        const bool as_it_is = is_aligned && plan_->forward.padded_out() == shape_.channels_out;
        fused_bias_ = as_it_is ? const_cast<float*>(bias) : bias_copy_.get();
        if (!as_it_is) {
            FINCH_CUDA(cudaMemcpyAsync(bias_copy_.get(), bias,
                                       static_cast<std::size_t>(shape_.channels_out) * sizeof(float),
                                       cudaMemcpyDeviceToDevice, stream_.get()));
        }
    }

    /// True if the forward pass and the data gradient need the weights in the same form, so that the weights are packed
    /// once.
    [[nodiscard]] bool data_takes_forwards_weights() const {
        const CudnnRequest& forward = plan_->forward.request;
        const CudnnRequest& data = plan_->data.request;
        return plan_->data.pass && forward.type == data.type && forward.shape == data.shape;
    }
    [[nodiscard]] void* at(std::size_t place) const { return static_cast<std::byte*>(scratch_->get()) + place; }

    void allocate_packed(const EngineChoice& choice, StreamMemory& packed) {
        if (choice.pass) {
            packed = stream_.allocate(weight_elements(choice.request.shape) * bytes_of(choice.request.type));
        }
    }
    [[nodiscard]] WeightCopy copy_for(const EngineChoice& choice, const void* from, void* to) const {
        return {.channels_out = shape_.channels_out,
                .channels_in = shape_.channels_in / shape_.groups,
                .taps = shape_.kernel * shape_.kernel,
                .padded_out = choice.padded_out(),
                .padded_in = choice.padded_in() / shape_.groups,
                .from = from,
                .to = to,
                .type = choice.request.type};
    }
    void pack_for(const EngineChoice& choice, const StreamMemory& packed) {
        if (packed) {
            stream_.deferred().forget(packed.get());  // packing that a new call replaces
            stream_.deferred().packed.push_back(copy_for(choice, parameters_, packed.get()));
        }
    }

    [[nodiscard]] ImageSizes sizes_in(const ConvolutionShape& shape) const {
        return {.height = shape.height, .width = shape.width, .channels = shape.channels_in};
    }
    /// Returns x in the type, the channels and the padding of the pass.
    [[nodiscard]] void* x_for_engine(const EngineChoice& choice, const Places& places, const float* x) const {
        if (takes_x(choice, shape_)) {
            return const_cast<float*>(x);
        }
        const Target to{at(places.x), choice.request.type};
        if (pads_images(shape_)) {
            move_images(stream_.get(), shape_.batch, {x, shape_.x_type}, sizes_in(shape_), to,
                        sizes_in(choice.request.shape), shape_.padding_before);
        } else {
            copy_channels(stream_.get(), {x, shape_.x_type}, pixels_in(shape_), shape_.channels_in, to,
                          choice.padded_in());
        }
        return to.data;
    }
    [[nodiscard]] void* grad_for_engine(const EngineChoice& choice, const Places& places, const float* grad_y) const {
        if (takes_y(choice, shape_)) {
            return const_cast<float*>(grad_y);
        }
        const Target to{at(places.y), choice.request.type};
        copy_channels(stream_.get(), {grad_y, shape_.y_type}, pixels_out(shape_), shape_.channels_out, to,
                      choice.padded_out());
        return to.data;
    }

    void backward_weights(const float* x, const float* grad_y, float* grad_weights) {
        const EngineChoice& choice = plan_->weights;
        choice.pass->run(stream_.get(),
                         {.x = x_for_engine(choice, weight_places_, x),
                          .weights = packed_grads_.get(),
                          .bias = nullptr,
                          .y = grad_for_engine(choice, weight_places_, grad_y)},
                         at(weight_places_.workspace));
        stream_.deferred().unpacked.push_back(copy_for(choice, packed_grads_.get(), grad_weights));
    }

    void backward_data(const float* grad_y, float* grad_x) {
        const EngineChoice& choice = plan_->data;
        void* to = takes_x(choice, shape_) ? grad_x : at(data_places_.x);
        choice.pass->run(stream_.get(),
                         {.x = to,
                          .weights = data_takes_forwards_weights() ? packed_forward_.get() : packed_data_.get(),
                          .bias = nullptr,
                          .y = grad_for_engine(choice, data_places_, grad_y)},
                         at(data_places_.workspace));
        const Source from{to, choice.request.type};
        if (pads_images(shape_)) {
            move_images(stream_.get(), shape_.batch, from, sizes_in(choice.request.shape), {grad_x, shape_.x_type},
                        sizes_in(shape_), -shape_.padding_before);
        } else if (to != grad_x) {
            copy_channels(stream_.get(), from, pixels_in(shape_), choice.padded_in(), {grad_x, shape_.x_type},
                          shape_.channels_in);
        }
    }

    Stream& stream_;
    ConvolutionShape shape_;
    std::shared_ptr<CudnnConvolutionPlan> plan_;
    std::size_t weights_;  ///< floats, canonical
    Places forward_places_, data_places_, weight_places_;
    std::shared_ptr<const Scratch> scratch_;
    // cuDNN requires tensors aligned to 16 bytes. The canonical arenas do not guarantee this alignment.
    StreamMemory packed_forward_, packed_data_;  ///< packed_data_: only if the data gradient needs other weights
    StreamMemory packed_grads_, bias_partials_;  ///< used until finish_deferred()
    StreamMemory bias_copy_;                     ///< if forward is fused: the bias, then zeros
    void* fused_bias_ = nullptr;
    const float* parameters_ = nullptr;  ///< canonical
};

}  // namespace

OperationBytes library_bytes(Stream& stream, const ConvolutionShape& shape) {
    const std::shared_ptr<CudnnConvolutionPlan> plan = plan_for(stream, shape);
    // ModelPlan::bytes contains the gradients as float32, without padding.
    const std::size_t counted = weight_elements(shape) * sizeof(float);
    return {.scratch = scratch_bytes_of(*plan, shape),
            .kept = std::max(grad_bytes_of(*plan), counted) - counted + bias_partials_of(shape)};
}

std::unique_ptr<Operation> make_library(Stream& stream, const ConvolutionShape& shape) {
    return std::make_unique<CudnnConvolution>(stream, shape);
}

}  // namespace finch::backend::cuda
