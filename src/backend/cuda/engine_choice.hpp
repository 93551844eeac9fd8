#pragma once

#include "cudnn_plan.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace finch::backend::cuda {

/// The way in which cuDNN computes one pass of a shape: the types, the padding and the plan.
struct EngineChoice {
    CudnnRequest request;
    std::unique_ptr<CudnnPass> pass;
    std::string name;

    [[nodiscard]] std::int64_t padded_in() const { return request.shape.channels_in; }
    [[nodiscard]] std::int64_t padded_out() const { return request.shape.channels_out; }
};

/// True if images are padded before cuDNN reads them. Engines of cuDNN need equal padding on both sides. The "same"
/// padding of an even kernel is not equal on both sides.
[[nodiscard]] bool pads_images(const ConvolutionShape& shape);

/// Returns whether `pass` uses cuDNN's engine for all shapes, which cuDNN's heuristics rank last.
[[nodiscard]] bool is_generic(const CudnnPass& pass);

/// Returns the best request that cuDNN supports for a pass of a shape, and its plan. Throws ApiError if cuDNN has no
/// engine.
[[nodiscard]] EngineChoice choose_engine(Libraries& libraries, ConvolutionPass pass, const ConvolutionShape& shape);

}  // namespace finch::backend::cuda
