#pragma once

#include "cudnn_plan.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace finch::backend::cuda {

/// How cuDNN computes one pass of a shape: in which type and with which padding.
struct EngineChoice {
    CudnnRequest request;
    std::unique_ptr<CudnnPass> pass;
    std::string name;

    [[nodiscard]] std::int64_t padded_in() const { return request.shape.channels_in; }
    [[nodiscard]] std::int64_t padded_out() const { return request.shape.channels_out; }
    /// Of the input or its gradient, of the output or its gradient, of the weights or theirs.
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

/// Whether images are padded before cuDNN sees them: it has engines for paddings that are alike before and behind, and
/// "same" with an even kernel is not.
[[nodiscard]] bool pads_images(const ConvolutionShape& shape);

/// The best that cuDNN has for a pass of a shape. Throws ApiError if it has no engine.
[[nodiscard]] EngineChoice choose_engine(Libraries& libraries, ConvolutionPass pass, const ConvolutionShape& shape);

}  // namespace finch::backend::cuda
