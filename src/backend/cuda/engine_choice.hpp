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
    /// type_of_x() returns the type of x or of its gradient. The next two functions do the same for y and for the
    /// weights.
    [[nodiscard]] TensorType type_of_x() const { return type_unless_written_by(ConvolutionPass::data_gradient); }
    [[nodiscard]] TensorType type_of_y() const { return type_unless_written_by(ConvolutionPass::forward); }
    [[nodiscard]] TensorType type_of_weights() const {
        return type_unless_written_by(ConvolutionPass::weight_gradient);
    }

private:
    [[nodiscard]] TensorType type_unless_written_by(ConvolutionPass writer) const {
        return request.pass == writer ? request.output : request.type;
    }
};

/// True if images are padded before cuDNN reads them. Engines of cuDNN need equal padding on both sides. The "same"
/// padding of an even kernel is not equal on both sides.
[[nodiscard]] bool pads_images(const ConvolutionShape& shape);

/// Returns the best request that cuDNN supports for a pass of a shape, and its plan. Throws ApiError if cuDNN has no
/// engine.
[[nodiscard]] EngineChoice choose_engine(Libraries& libraries, ConvolutionPass pass, const ConvolutionShape& shape);

}  // namespace finch::backend::cuda
