#include "engine_choice.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace finch::backend::cuda {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

/// Returns the request with its channels padded to a multiple of `unit`. A request with groups is returned unpadded:
/// each group would need its own padding.
CudnnRequest padded(CudnnRequest request, std::int64_t unit) {
    if (request.shape.groups > 1) {
        return request;
    }
    request.shape.channels_in = round_up(request.shape.channels_in, unit);
    request.shape.channels_out = round_up(request.shape.channels_out, unit);
    return request;
}

/// Returns the same convolution for images that already contain their padding.
ConvolutionShape over_padded_images(ConvolutionShape shape) {
    shape.height += shape.padding_before + shape.padding_after;
    shape.width += shape.padding_before + shape.padding_after;
    shape.padding_before = 0;
    shape.padding_after = 0;
    return shape;
}

/// Returns the type to which inputs are rounded before they are multiplied.
TensorType type_of(Precision precision) {
    switch (precision) {
        case Precision::float32:
        case Precision::tf32:
            break;
        case Precision::bfloat16:
            return TensorType::bfloat16;
        case Precision::float16:
            return TensorType::float16;
    }
    return TensorType::float32;
}

/// Returns the requests to try with cuDNN, best first. Sums are always float32. For a 16-bit precision, the first
/// requests have 16-bit inputs and float32 outputs. Requests with 16-bit outputs follow, except for gradients of
/// weights. The channels of the 16-bit requests are padded to multiples of 8 for tensor cores. The last requests use
/// float32, which is more exact: first with the shape's own channels, then with channels padded to multiples of 4.
std::vector<CudnnRequest> candidates(ConvolutionPass pass, const ConvolutionShape& shape) {
    std::vector<CudnnRequest> requests;
    const auto add = [&](const CudnnRequest& request) {
        if (pass == ConvolutionPass::forward) {
            requests.push_back(request);
            requests.back().is_fused = true;
        }
        requests.push_back(request);
    };
    CudnnRequest request{.pass = pass, .shape = pads_images(shape) ? over_padded_images(shape) : shape};
    if (const TensorType type = type_of(shape.precision); type != TensorType::float32) {
        request.type = type;
        add(padded(request, 8));
        if (pass != ConvolutionPass::weight_gradient) {
            request.output = type;
            add(padded(request, 8));
        }
        request.type = TensorType::float32;
        request.output = TensorType::float32;
    }
    add(request);
    if (const CudnnRequest wider = padded(request, 4); wider.shape != request.shape) {
        add(wider);
    }
    return requests;
}

std::string type_name(const CudnnRequest& request) {
    if (request.type == TensorType::float32) {
        return "float32";
    }
    const std::string name = request.type == TensorType::bfloat16 ? "bfloat16" : "float16";
    return request.output == TensorType::float32 ? name + " to float32" : name;
}

}  // namespace

bool pads_images(const ConvolutionShape& shape) {
    return shape.padding_before != shape.padding_after;
}

EngineChoice choose_engine(Libraries& libraries, ConvolutionPass pass, const ConvolutionShape& shape) {
    constexpr std::array pass_names{"forward", "data gradient", "weight gradient"};
    const std::string text =
        fmt::format("{} of a convolution {}x{}, {}->{} channels, batch {}", pass_names[static_cast<std::size_t>(pass)],
                    shape.kernel, shape.kernel, shape.channels_in, shape.channels_out, shape.batch);
    for (const CudnnRequest& request : candidates(pass, shape)) {
        if (auto found = plan_cudnn_pass(libraries, request)) {
            const ConvolutionShape& s = request.shape;
            std::string name =
                fmt::format("cudnn:nhwc {}{}{}{} ({})", type_name(request), pads_images(shape) ? ", padded images" : "",
                            s.channels_in == shape.channels_in && s.channels_out == shape.channels_out
                                ? ""
                                : fmt::format(", channels {}->{}", s.channels_in, s.channels_out),
                            request.is_fused ? ", fused" : "", found->engine());
            spdlog::debug("{}: {}", text, name);
            return {request, std::move(found), std::move(name)};
        }
    }
    throw ApiError(fmt::format("cuDNN has no engine for the {}", text));
}

}  // namespace finch::backend::cuda
