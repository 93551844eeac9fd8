#pragma once

#include "finch/nn/plan.hpp"

#include "graph_builder.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace finch::nn {

/// A value, and what the next layer must know of it.
struct Flow {
    std::size_t value = 0;
    SampleShape shape;
    bool flat = false;  ///< after a flatten
};

/// What a layer becomes: operations, tensors and modules, one behind the other. Whatever cannot be is a ModelError that
/// names the layer.
class LayerBuilder {
protected:
    LayerBuilder(SampleShape input, std::int64_t classes, std::int64_t batch, Numerics numerics);

    void require(bool holds, const std::string& problem) const;
    void require_at_least(std::int64_t least, std::int64_t value, const char* what) const;
    void require_image(const char* what) const;
    /// That the last axis is one of channels.
    void require_channels() const;
    void require_fit(std::int64_t kernel, std::int64_t padding) const;

    void push_convolution(backend::ConvolutionShape shape, const std::string& module);
    void push_linear(std::int64_t units, backend::Activation activation, const std::string& module);
    void push_activation(backend::Activation activation);
    void push_add(const Flow& other, backend::Activation activation);
    /// `before`, then what the body made of it.
    void push_concatenation(const Flow& before);
    void push(const backend::OperationShape& operation, SampleShape out) { push(operation, out, {now_.value}); }

    /// A normalisation's module, its weight and its bias.
    std::string add_norm();

    /// The name of a module of the nn.Sequential that is being filled. An activation is a module of its own there.
    std::string next_module();
    /// What of a layer's activation its own operation does.
    [[nodiscard]] static backend::Activation fused(backend::Activation activation) {
        return needs_its_input(activation) ? backend::Activation::none : activation;
    }
    /// The rest of it, and its module.
    void finish_activation(backend::Activation activation);

    /// The nn.Sequential that is being filled.
    struct Modules {
        std::string prefix{};
        std::int64_t count = 0;
    };

    GraphBuilder graph_;
    std::int64_t batch_;
    Flow now_;
    Modules modules_;
    std::int64_t layer_ = -1;  ///< of the configuration's list
    std::string place_ = "model";

private:
    void check_size(const SampleShape& shape) const;
    void push(const backend::OperationShape& operation, SampleShape out, std::vector<std::size_t> inputs);
    /// A weight whose first axis is that of the outputs, and their bias.
    void add_weights(const std::string& module, std::vector<std::int64_t> weight_shape, std::int64_t fan_in);
};

}  // namespace finch::nn
