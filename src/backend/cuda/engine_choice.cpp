#include "engine_choice.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"

#include <algorithm>
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

[[nodiscard]] bool may_fuse(Activation activation) {
    return activation == Activation::none || activation == Activation::relu;
}

/// Returns the type to which inputs are rounded before they are multiplied.
TensorType type_of(Precision precision) {
    return precision == Precision::bfloat16  ? TensorType::bfloat16
           : precision == Precision::float16 ? TensorType::float16
                                             : TensorType::float32;
}

/// Returns the bytes of all tensors of a request. Engines for float32 in NHWC keep copies of the tensors in another
/// layout in their workspace.
std::int64_t tensor_bytes(const CudnnRequest& request) {
    const ConvolutionShape& s = request.shape;
    return 4 * (s.batch * s.height * s.width * s.channels_in +
                s.batch * s.height_out() * s.width_out() * s.channels_out + s.weights());
}

/// Returns the requests to try with cuDNN, best first. The rules follow from the engines that cuDNN has
/// (tests/cuda/engines.txt):
/// - 16-bit tensors, with channels in multiples of 8 for tensor cores. All tensors have the same type, and nothing is
///   fused: other engines would be compiled at run time. Gradients of weights are bfloat16 if x or y is stored as
///   bfloat16. Otherwise they are requested in float32, in which tensor cores multiply in TF32.
/// - float32, fused with the bias and no activation or relu; with another activation cuDNN has only its generic engine.
///   The channels are as they are or padded. Tensor cores need multiples of 4, so in all precisions but float32 the
///   padded requests come first.
std::vector<CudnnRequest> candidates(ConvolutionPass pass, const ConvolutionShape& shape) {
    std::vector<CudnnRequest> requests;
    const auto add = [&](CudnnRequest request) {
        request.most_workspace = std::max(request.most_workspace, tensor_bytes(request) + (std::int64_t{1} << 20));
        if (pass == ConvolutionPass::forward && request.type == TensorType::float32 && may_fuse(shape.activation) &&
            !shape.skips_bias) {
            requests.push_back(request);
            requests.back().is_fused = true;
        }
        requests.push_back(request);
    };
    const CudnnRequest request{.pass = pass, .shape = pads_images(shape) ? over_padded_images(shape) : shape};
    const TensorType type = type_of(shape.precision);
    const bool is_stored_narrow = shape.x_type != TensorType::float32 || shape.y_type != TensorType::float32;
    if (type != TensorType::float32 && (pass != ConvolutionPass::weight_gradient || is_stored_narrow)) {
        CudnnRequest narrow = padded(request, 8);
        narrow.type = type;
        add(narrow);
    }
    std::vector<std::int64_t> units{1, 4, 16};
    if (shape.precision != Precision::float32) {
        units = {4, 16, 1};
    }
    for (const std::int64_t unit : units) {
        const CudnnRequest wider = padded(request, unit);
        const bool is_new = std::none_of(requests.begin(), requests.end(), [&](const CudnnRequest& other) {
            return other.type == wider.type && other.shape == wider.shape;
        });
        if (is_new) {
            add(wider);
        }
    }
    return requests;
}

std::string type_name(const CudnnRequest& request) {
    return request.type == TensorType::float32    ? "float32"
           : request.type == TensorType::bfloat16 ? "bfloat16"
                                                  : "float16";
}

}  // namespace

bool pads_images(const ConvolutionShape& shape) {
    return shape.padding_before != shape.padding_after;
}

bool is_generic(const CudnnPass& pass) {
    return pass.engine() == "eng0" || pass.engine().starts_with("eng0_");
}

EngineChoice choose_engine(Libraries& libraries, ConvolutionPass pass, const ConvolutionShape& shape) {
    constexpr std::array pass_names{"forward", "data gradient", "weight gradient"};
    const std::string text =
        fmt::format("{} of a convolution {}x{}, {}->{} channels, batch {}", pass_names[static_cast<std::size_t>(pass)],
                    shape.kernel, shape.kernel, shape.channels_in, shape.channels_out, shape.batch);
    EngineChoice generic;
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
            if (!is_generic(*found)) {
                return {request, std::move(found), std::move(name)};
            }
            if (!generic.pass) {
                generic = {request, std::move(found), std::move(name)};
            }
        }
    }
    if (generic.pass) {
        return generic;
    }
    throw ApiError(fmt::format("cuDNN has no engine for the {}", text));
}

}  // namespace finch::backend::cuda
