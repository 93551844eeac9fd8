#pragma once

#include "finch/base/format.hpp"

#include "engine_choice.hpp"

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// The table of the engines that cuDNN chooses for Finch's convolutions: tests/cuda/engines.txt.
namespace finch::engine_table {

using namespace backend;
using namespace backend::cuda;

inline constexpr std::array passes{ConvolutionPass::forward, ConvolutionPass::data_gradient,
                                   ConvolutionPass::weight_gradient};
inline constexpr std::array precisions{Precision::float32, Precision::tf32, Precision::bfloat16, Precision::float16};

inline ConvolutionShape same(std::int64_t batch, std::int64_t side, std::int64_t channels_in, std::int64_t channels_out,
                             std::int64_t kernel, std::int64_t stride = 1) {
    return {.batch = batch,
            .height = side,
            .width = side,
            .channels_in = channels_in,
            .channels_out = channels_out,
            .kernel = kernel,
            .stride = stride,
            .padding_before = (kernel - 1) / 2,
            .padding_after = kernel / 2,
            .activation = Activation::relu};
}

/// Layers of wide and residual networks, and unusual ones: kernels from 1 to 11, even ones, strides, groups, dilation,
/// one channel, odd channels, batches from 1 to 1024, large images, other activations.
inline std::vector<ConvolutionShape> shapes() {
    std::vector<ConvolutionShape> all{
        same(128, 32, 32, 32, 3),     same(128, 16, 64, 64, 3), same(128, 8, 128, 128, 3), same(128, 32, 3, 32, 3),
        same(128, 28, 1, 32, 3),      same(8, 28, 10, 10, 3),   same(16, 12, 17, 17, 3),   same(128, 16, 64, 128, 3, 2),
        same(128, 16, 64, 128, 1, 2), same(128, 16, 64, 64, 1), same(64, 14, 32, 64, 5),   same(32, 224, 3, 64, 7, 2),
        same(64, 28, 16, 32, 11),     same(64, 16, 32, 32, 4),  same(1, 32, 32, 32, 3),    same(256, 32, 32, 32, 3),
        same(1024, 32, 32, 32, 3),    same(256, 32, 64, 64, 3), same(32, 56, 64, 64, 3),   same(256, 8, 256, 256, 3)};
    ConvolutionShape shape = same(64, 16, 32, 32, 3);
    shape.dilation = shape.padding_before = shape.padding_after = 2;
    all.push_back(shape);
    for (const std::int64_t groups : {4, 32}) {
        shape = same(64, 16, 32, 32, 3);
        shape.groups = groups;
        all.push_back(shape);
    }
    for (const Activation activation : {Activation::none, Activation::sigmoid, Activation::tanh}) {
        shape = same(128, 32, 32, 32, 3);
        shape.activation = activation;
        all.push_back(shape);
    }
    return all;
}

inline std::string text_of(const ConvolutionShape& s) {
    std::string text = fmt::format("{}x{}x{}x{}, {} of {}x{}", s.batch, s.height, s.width, s.channels_in,
                                   s.channels_out, s.kernel, s.kernel);
    text += s.stride > 1 ? fmt::format(" / {}", s.stride) : "";
    text += s.groups > 1 ? fmt::format(", groups {}", s.groups) : "";
    text += s.dilation > 1 ? fmt::format(", dilation {}", s.dilation) : "";
    return text + fmt::format(", {}", words_of(Activation{})[static_cast<std::size_t>(s.activation)]);
}

/// Returns the choice without the settings of the engine, and its workspace in whole MiB.
inline std::string text_of(const EngineChoice& choice) {
    const std::string prefix = "cudnn:nhwc ";
    std::string text = choice.name.substr(prefix.size());
    if (const auto settings = text.find("_k"); settings != std::string::npos) {
        text = text.substr(0, settings) + ")";
    }
    const std::size_t mebibytes = choice.pass->workspace_bytes() >> 20;
    return text + (mebibytes > 0 ? fmt::format(" {} MiB", mebibytes) : "");
}

/// The rows for one device: "name: shape; precision" and the choices for the three passes.
using Rows = std::map<std::string, std::string>;

/// Sets the types of x and y to bfloat16 if their channels are multiples of 8. Returns true if y is bfloat16 and the
/// padding is equal before and after.
inline bool store_bfloat16(ConvolutionShape& shape) {
    const auto type = [](std::int64_t channels) {
        return channels % 8 == 0 ? TensorType::bfloat16 : TensorType::float32;
    };
    shape.precision = Precision::bfloat16;
    shape.x_type = type(shape.channels_in);
    shape.y_type = type(shape.channels_out);
    return shape.padding_before == shape.padding_after && shape.y_type == TensorType::bfloat16;
}

template <class Use>
Rows rows_of(Libraries& libraries, const std::string& name, Use use) {
    Rows rows;
    const auto add = [&](const ConvolutionShape& shape, std::string_view precision) {
        std::string& row = rows[fmt::format("{}: {}; {}", name, text_of(shape), precision)];
        for (const ConvolutionPass pass : passes) {
            const EngineChoice choice = choose_engine(libraries, pass, shape);
            use(shape, choice);
            row += (row.empty() ? "" : "; ") + text_of(choice);
        }
    };
    for (ConvolutionShape shape : shapes()) {
        for (const Precision precision : precisions) {
            shape.precision = precision;
            add(shape, words_of(Precision{})[static_cast<std::size_t>(precision)]);
        }
        if (store_bfloat16(shape)) {
            add(shape, "stored bfloat16");
        }
    }
    return rows;
}

/// The committed table.
struct Table {
    std::int64_t cudnn_version = 0;
    Rows rows;
};

inline Table read_table() {
    const char* const folder = std::getenv("FINCH_SOURCE_DIR");
    const std::string path = std::string(folder != nullptr ? folder : ".") + "/tests/cuda/engines.txt";
    std::ifstream file(path);
    Table table;
    std::string line;
    while (std::getline(file, line)) {
        const auto end = line.find(" = ");
        if (line.starts_with("cuDNN ")) {
            table.cudnn_version = std::stoll(line.substr(6));
        } else if (end != std::string::npos) {
            table.rows[line.substr(0, end)] = line.substr(end + 3);
        }
    }
    if (table.cudnn_version == 0) {
        throw std::runtime_error("there is no table " + path + "; FINCH_SOURCE_DIR is the folder of Finch's sources");
    }
    return table;
}

}  // namespace finch::engine_table
