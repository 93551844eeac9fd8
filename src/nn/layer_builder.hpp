#pragma once

#include "finch/nn/plan.hpp"

#include "graph_builder.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace finch::nn {

/// A value of the plan, with the properties that the next layer needs.
struct Flow {
    std::size_t value = 0;
    SampleShape shape;
    bool flat = false;  ///< after a flatten
};

/// The conversion of layers, one after the other, to operations, tensors and PyTorch modules. If a layer is impossible,
/// throws ModelError, which names the layer.
class LayerBuilder {
protected:
    LayerBuilder(SampleShape input, std::int64_t classes, std::int64_t batch, Numerics numerics);

    void require(bool holds, const std::string& problem) const;
    void require_at_least(std::int64_t least, std::int64_t value, const char* what) const;
    void require_image(const char* what) const;
    /// Requires that the last axis of the layer's input is the channel axis.
    void require_channels() const;
    void require_fit(std::int64_t kernel, std::int64_t padding) const;

    void push_convolution(backend::ConvolutionShape shape, const std::string& module);
    void push_linear(std::int64_t units, backend::Activation activation, const std::string& module);
    void push_activation(backend::Activation activation);
    void push_add(const Flow& other, backend::Activation activation);
    /// Pushes the concatenation of `before`, the input of a block, with the output of the block's body.
    void push_concatenation(const Flow& before);
    void push(const backend::OperationShape& operation, SampleShape out) { push(operation, out, {now_.value}); }

    /// Adds the weight and the bias of a normalisation. Returns the name of the module of this normalisation.
    std::string add_norm();

    /// Returns the name of the next module of the present nn.Sequential, in which each activation is a module of its
    /// own.
    std::string next_module();
    /// Returns the activation that the operation of a layer computes itself, or none if the activation is a separate
    /// operation.
    [[nodiscard]] static backend::Activation fused(backend::Activation activation) {
        return needs_its_input(activation) ? backend::Activation::none : activation;
    }
    /// Adds the operation of an activation that is not fused, and counts its module.
    void finish_activation(backend::Activation activation);

    /// The nn.Sequential to which the builder adds modules at present.
    struct Modules {
        std::string prefix{};
        std::int64_t count = 0;
    };

    GraphBuilder graph_;
    std::int64_t batch_;
    Flow now_;
    Modules modules_;
    std::int64_t layer_ = -1;  ///< index in the configuration's list
    std::string place_ = "model";

private:
    void check_size(const SampleShape& shape) const;
    void push(const backend::OperationShape& operation, SampleShape out, std::vector<std::size_t> inputs);
    /// Adds a weight with the outputs as its first axis, and a bias per output.
    void add_weights(const std::string& module, std::vector<std::int64_t> weight_shape, std::int64_t fan_in);
};

}  // namespace finch::nn
