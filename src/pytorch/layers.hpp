#pragma once

#include "finch/nn/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace finch::pytorch {

/// The layers of a network as Python source.
class Layers {
public:
    /// Throws ModelError if the network cannot exist.
    Layers(const nn::ModelSpec& spec, nn::SampleShape input, std::int64_t outputs);

    /// The classes of blocks and of layers that torch.nn lacks, each followed by two empty lines.
    [[nodiscard]] std::string classes() const;
    /// The modules of the network, a line for each layer, indented for arguments in a method.
    [[nodiscard]] const std::string& modules() const noexcept { return modules_; }
    /// True if the network's output is (N, outputs), otherwise (N, outputs, 1, 1).
    [[nodiscard]] bool is_flat() const noexcept { return now_.is_flat; }

private:
    /// The output of the last layer.
    struct Flow {
        std::string channels;  ///< their number, or an expression with the argument `channels` of the block's class
        nn::SampleShape shape;
        bool is_flat = false;  ///< (N, features), otherwise (N, channels, height, width)
    };
    using Modules = std::vector<std::string>;
    struct Line {
        Modules modules;
        nn::SampleShape shape;  ///< of the output
        std::int64_t count = 1;
    };

    std::vector<Line> lines_of(const nn::ModelSpec& spec);
    Modules modules_of(const nn::ConvLayer& layer);
    Modules modules_of(const nn::PoolLayer& layer);
    Modules modules_of(const nn::GlobalAveragePoolLayer& layer);
    Modules modules_of(const nn::FlattenLayer& layer);
    Modules modules_of(const nn::LinearLayer& layer);
    Modules modules_of(const nn::ActivationLayer& layer);
    Modules modules_of(const nn::BatchNormLayer& layer);
    Modules modules_of(const nn::LayerNormLayer& layer);
    Modules modules_of(const nn::DropoutLayer& layer);
    Modules modules_of(const nn::BlockLayer& layer);

    /// Returns the source of the class of a block from its __init__ on, and moves on to the block's output.
    std::string block_source(const nn::BlockLayer& layer);
    /// Returns the module that converts the block's input `before` to the shape of its body's output `now_`.
    std::string shortcut(const Flow& before);
    /// Returns the number of features of a flat value as an expression: "10 * 28 * 28".
    [[nodiscard]] static std::string features(const Flow& flow);
    /// Returns the name of the class with this source; adds the class if there is none.
    std::string name_of_class(const std::string& base, const std::string& source);
    [[nodiscard]] Modules with_activation(std::string module, backend::Activation activation);

    /// Returns the shape of the next operation of the plan, and moves on to its output.
    template <class Shape>
    const Shape& next();
    template <class Shape>
    [[nodiscard]] bool is_next() const;

    nn::ModelPlan plan_;
    std::size_t node_ = 0;  ///< the next one
    Flow now_;
    std::vector<std::pair<std::string, std::string>> classes_;  ///< name and source, in the order of their definition
    std::string modules_;
};

}  // namespace finch::pytorch
