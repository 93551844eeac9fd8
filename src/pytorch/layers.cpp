#include "layers.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <iterator>
#include <variant>

namespace finch::pytorch {
namespace {

using backend::Activation;

constexpr std::int64_t fewest_joined = 4;  ///< equal lines that become one line with a loop
constexpr const char* line_indent = "            ";

// The source of classes that torch.nn lacks, from their base class on.
constexpr const char* padded_conv =
    R"((nn.Conv2d):
    """A convolution with one more row and column of zeros below and on the right than on the other sides."""

    def forward(self, x):
        return super().forward(nn.functional.pad(x, (0, 1, 0, 1)))
)";
constexpr const char* pixel_linear =
    R"((nn.Linear):
    """A linear layer for images of one pixel, (N, channels, 1, 1)."""

    def forward(self, x):
        return super().forward(x.flatten(1))[:, :, None, None]
)";

struct ActivationNames {
    std::string module;
    std::string function;
};

ActivationNames names_of(Activation activation) {
    switch (activation) {
        case Activation::none:
            return {"nn.Identity()", ""};
        case Activation::relu:
            return {"nn.ReLU()", "torch.relu"};
        case Activation::sigmoid:
            return {"nn.Sigmoid()", "torch.sigmoid"};
        case Activation::tanh:
            return {"nn.Tanh()", "torch.tanh"};
        case Activation::leaky_relu:
            return {"nn.LeakyReLU()", "nn.functional.leaky_relu"};
        case Activation::gelu:
            return {"nn.GELU()", "nn.functional.gelu"};
        case Activation::silu:
            return {"nn.SiLU()", "nn.functional.silu"};
    }
    return {};
}

/// Returns ", name=value", or nothing if the value is PyTorch's default.
template <class Value, class Default>
std::string option(const char* name, const Value& value, const Default& usual) {
    return value == usual ? "" : fmt::format(", {}={}", name, value);
}

bool is_number(const std::string& expression) {
    return expression.find_first_not_of("0123456789") == std::string::npos;
}

/// Returns an expression in parentheses if it is a sum.
std::string factor(const std::string& expression) {
    return expression.find('+') == std::string::npos ? expression : "(" + expression + ")";
}

std::string shape_comment(const nn::SampleShape& shape) {
    return shape.height * shape.width == 1 ? fmt::format("  # {}", shape.channels)
                                           : fmt::format("  # {} x {} x {}", shape.channels, shape.height, shape.width);
}

/// Returns the modules as arguments, `count` times.
std::string joined(const std::vector<std::string>& modules, std::int64_t count) {
    if (count == 1) {
        return fmt::format("{}", fmt::join(modules, ", "));
    }
    return modules.size() == 1
               ? fmt::format("*({} for _ in range({}))", modules.front(), count)
               : fmt::format("*(module for _ in range({}) for module in ({}))", count, fmt::join(modules, ", "));
}

}  // namespace

Layers::Layers(const nn::ModelSpec& spec, nn::SampleShape input, std::int64_t outputs)
    : plan_(nn::plan_model(spec, input, outputs, 1)), now_{std::to_string(input.channels), input} {
    nn::SampleShape before = input;
    for (const Line& line : lines_of(spec)) {
        modules_ += fmt::format("{}{},{}\n", line_indent, joined(line.modules, line.count),
                                line.shape == before ? "" : shape_comment(line.shape));
        before = line.shape;
    }
    if (node_ != plan_.nodes.size()) {
        throw Error(fmt::format("only {} of the {} operations of the network were written", node_, plan_.nodes.size()));
    }
}

std::string Layers::classes() const {
    std::string text;
    for (const auto& [name, source] : classes_) {
        text += fmt::format("class {}{}\n\n", name, source);
    }
    return text;
}

template <class Shape>
const Shape& Layers::next() {
    const nn::Node& node = plan_.nodes.at(node_++);
    now_.shape = plan_.values[node.output].shape;
    return std::get<Shape>(node.operation);
}

template <class Shape>
bool Layers::is_next() const {
    return std::holds_alternative<Shape>(plan_.nodes.at(node_).operation);
}

std::vector<Layers::Line> Layers::lines_of(const nn::ModelSpec& spec) {
    std::vector<Line> lines;
    const auto add = [&](const auto& layer) {
        Modules modules = modules_of(layer);
        if (!modules.empty()) {
            lines.push_back({std::move(modules), now_.shape});
        }
    };
    for (const nn::Layer& any : spec) {
        std::visit(
            [&](const auto& layer) {
                std::int64_t count = 1;
                if constexpr (requires { layer.repeat; }) {
                    count = layer.repeat;
                }
                for (std::int64_t i = 0; i < count; ++i) {
                    add(layer);
                }
            },
            any);
    }
    std::vector<Line> shorter;
    for (auto first = lines.begin(); first != lines.end();) {
        const auto end =
            std::find_if(first, lines.end(), [&](const Line& line) { return line.modules != first->modules; });
        if (end - first >= fewest_joined) {
            shorter.push_back({first->modules, std::prev(end)->shape, end - first});
        } else {
            shorter.insert(shorter.end(), first, end);
        }
        first = end;
    }
    return shorter;
}

Layers::Modules Layers::with_activation(std::string module, Activation activation) {
    if (backend::needs_its_input(activation)) {
        next<backend::ActivationShape>();
    }
    return activation == Activation::none ? Modules{std::move(module)}
                                          : Modules{std::move(module), names_of(activation).module};
}

Layers::Modules Layers::modules_of(const nn::ConvLayer& layer) {
    const Flow before = now_;
    const auto& conv = next<backend::ConvolutionShape>();
    const bool is_even = conv.padding_before == conv.padding_after;
    now_.channels = std::to_string(conv.channels_out);
    return with_activation(
        fmt::format("{}({}, {}, {}{}{}{}{})", is_even ? "nn.Conv2d" : name_of_class("PaddedConv2d", padded_conv),
                    before.channels, now_.channels, conv.kernel, option("stride", conv.stride, 1),
                    option("padding", conv.padding_before, 0), option("dilation", conv.dilation, 1),
                    option("groups", layer.groups == 0 ? before.channels : std::to_string(conv.groups), "1")),
        layer.activation);
}

Layers::Modules Layers::modules_of(const nn::PoolLayer& /*layer*/) {
    const auto& pool = next<backend::PoolingShape>();
    return {fmt::format("{}({}{}{})", pool.kind == backend::Pooling::max ? "nn.MaxPool2d" : "nn.AvgPool2d", pool.kernel,
                        option("stride", pool.stride, pool.kernel), option("padding", pool.padding, 0))};
}

Layers::Modules Layers::modules_of(const nn::GlobalAveragePoolLayer& /*layer*/) {
    next<backend::MeanShape>();
    return {"nn.AdaptiveAvgPool2d(1)"};
}

Layers::Modules Layers::modules_of(const nn::FlattenLayer& /*layer*/) {
    now_.is_flat = true;
    return {"nn.Flatten()"};
}

Layers::Modules Layers::modules_of(const nn::LinearLayer& layer) {
    const std::string inputs = features(now_);
    now_.channels = std::to_string(next<backend::LinearShape>().units);
    return with_activation(
        fmt::format("{}({}, {})", now_.is_flat ? "nn.Linear" : name_of_class("PixelLinear", pixel_linear), inputs,
                    now_.channels),
        layer.activation);
}

Layers::Modules Layers::modules_of(const nn::ActivationLayer& layer) {
    if (layer.activation == Activation::none) {
        return {};
    }
    next<backend::ActivationShape>();
    return {names_of(layer.activation).module};
}

Layers::Modules Layers::modules_of(const nn::BatchNormLayer& layer) {
    next<backend::BatchNormShape>();
    return with_activation(fmt::format("{}({}{}{})", now_.is_flat ? "nn.BatchNorm1d" : "nn.BatchNorm2d", now_.channels,
                                       option("eps", layer.epsilon, 1e-5), option("momentum", layer.momentum, 0.1)),
                           layer.activation);
}

Layers::Modules Layers::modules_of(const nn::LayerNormLayer& layer) {
    next<backend::LayerNormShape>();
    Modules modules{fmt::format("{}({}{})", now_.is_flat ? "nn.LayerNorm" : "nn.GroupNorm",
                                (now_.is_flat ? "" : "1, ") + now_.channels, option("eps", layer.epsilon, 1e-5))};
    const Modules activation = modules_of(nn::ActivationLayer{layer.activation});
    modules.insert(modules.end(), activation.begin(), activation.end());
    return modules;
}

Layers::Modules Layers::modules_of(const nn::DropoutLayer& /*layer*/) {
    return {fmt::format("nn.Dropout({})", next<backend::DropoutShape>().rate)};
}

Layers::Modules Layers::modules_of(const nn::BlockLayer& layer) {
    const std::string channels = now_.channels;
    now_.channels = "channels";
    const std::string source = block_source(layer);
    const bool is_general = source.find("channels") != std::string::npos;
    const bool adds = layer.residual && layer.join == nn::Join::add;
    const std::string name = name_of_class(
        adds             ? "ResidualBlock"
        : layer.residual ? "DenseBlock"
                         : "Block",
        fmt::format("(nn.Module):\n    def __init__(self{}):\n{}", is_general ? ", channels" : "", source));
    if (!is_number(now_.channels) && channels != "channels") {  // an expression of the class that was just written
        now_.channels = std::to_string(now_.shape.channels);
    }
    return {fmt::format("{}({})", name, is_general ? channels : "")};
}

std::string Layers::block_source(const nn::BlockLayer& layer) {
    const Flow before = now_;
    std::string source = "        super().__init__()\n        self.body = nn.Sequential(";
    for (const Line& line : lines_of(layer.layers)) {
        source += fmt::format("\n{}{},", line_indent, joined(line.modules, line.count));
    }
    source += source.back() == '(' ? ")\n" : "\n        )\n";
    std::string result = "self.body(x)";
    const bool adds = layer.residual && layer.join == nn::Join::add;
    if (adds) {
        source += fmt::format("        self.shortcut = {}\n", shortcut(before));
        next<backend::AddShape>();
        result += " + self.shortcut(x)";
    } else if (layer.residual) {
        next<backend::ConcatenateShape>();
        now_.channels = fmt::format("{} + {}", before.channels, now_.channels);
        result = "torch.cat([x, self.body(x)], 1)";
    }
    if (layer.activation != Activation::none) {
        if (!adds || backend::needs_its_input(layer.activation)) {
            next<backend::ActivationShape>();
        }
        result = fmt::format("{}({})", names_of(layer.activation).function, result);
    }
    return source + fmt::format("\n    def forward(self, x):\n        return {}\n", result);
}

std::string Layers::shortcut(const Flow& before) {
    const Flow body = now_;
    if (body.is_flat != before.is_flat) {
        return "nn.Flatten()";
    }
    std::int64_t stride = 1;
    std::string module = fmt::format("nn.Linear({}, {})", features(before), body.channels);
    if (is_next<backend::LinearShape>()) {
        next<backend::LinearShape>();
    } else if (is_next<backend::ConvolutionShape>()) {
        stride = next<backend::ConvolutionShape>().stride;
    }
    if (!body.is_flat) {
        module = fmt::format("nn.Conv2d({}, {}, 1{})", before.channels, body.channels, option("stride", stride, 1));
    }
    if (body.channels == before.channels && body.shape == before.shape) {
        return "nn.Identity()";
    }
    const bool keeps_size = body.shape.height == before.shape.height && body.shape.width == before.shape.width;
    return keeps_size && is_number(body.channels)
               ? fmt::format("nn.Identity() if {} == {} else {}", before.channels, body.channels, module)
               : module;
}

std::string Layers::features(const Flow& flow) {
    const nn::SampleShape& shape = flow.shape;
    return shape.height * shape.width == 1
               ? flow.channels
               : fmt::format("{} * {} * {}", factor(flow.channels), shape.height, shape.width);
}

std::string Layers::name_of_class(const std::string& base, const std::string& source) {
    std::int64_t same_base = 0;
    for (const auto& [name, other] : classes_) {
        if (other == source && name.starts_with(base)) {
            return name;
        }
        same_base += name.starts_with(base) ? 1 : 0;
    }
    classes_.emplace_back(same_base == 0 ? base : fmt::format("{}{}", base, same_base + 1), source);
    return classes_.back().first;
}

}  // namespace finch::pytorch
