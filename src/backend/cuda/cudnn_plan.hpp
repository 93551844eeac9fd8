#pragma once

#include "finch/backend/operation.hpp"

#include "libraries.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace finch::backend::cuda {

enum class ConvolutionPass { forward, data_gradient, weight_gradient };

/// A request to cuDNN for one pass of a convolution. Activations are NHWC, weights are (out, kernel, kernel, in).
struct CudnnRequest {
    ConvolutionPass pass = ConvolutionPass::forward;
    ConvolutionShape shape;                 ///< its channels include the channel padding
    TensorType type = TensorType::float32;  ///< of all tensors but the bias; sums are float32
    bool is_fused = false;                  ///< forward: the plan includes bias and activation, none or relu
    std::int64_t most_workspace = std::int64_t{64} << 20;  ///< bytes
};

/// The inputs and outputs of a pass, in device memory.
struct CudnnTensors {
    void* x = nullptr;        ///< the input; data_gradient: its gradient, written
    void* weights = nullptr;  ///< weight_gradient: their gradient, written
    void* bias = nullptr;     ///< float32 (channels_out), if the pass is fused
    void* y = nullptr;        ///< forward: the output, written; otherwise its gradient
};

/// The plan that cuDNN chose for one pass. A plan is made once per device.
class CudnnPass {
public:
    virtual ~CudnnPass() = default;
    [[nodiscard]] virtual std::size_t workspace_bytes() const = 0;
    [[nodiscard]] virtual std::string engine() const = 0;
    /// Enqueues the pass on `stream`.
    virtual void run(cudaStream_t stream, const CudnnTensors& tensors, void* workspace) = 0;
};

/// Returns the plan that cuDNN's heuristics rank first. Considers only engines that are as exact and as reproducible as
/// the shape requires, and that need no compilation at run time, which takes about a second per shape. Returns null if
/// cuDNN has no suitable engine.
[[nodiscard]] std::unique_ptr<CudnnPass> plan_cudnn_pass(Libraries& libraries, const CudnnRequest& request);

/// Returns the properties that an engine must not have. In every precision, sums are float32 and inputs are never
/// converted to a narrower type than requested. In half precision, gradients below 6e-8 would vanish. Engines that
/// transform their inputs compute the transform in the input type, and the range of float16 is too small for it.
[[nodiscard]] inline std::vector<cudnnBackendNumericalNote_t> barred_notes(const ConvolutionShape& shape) {
    std::vector<cudnnBackendNumericalNote_t> notes{CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
                                                   CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION};
    if (shape.deterministic) {
        notes.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    }
    if (shape.precision == Precision::float32) {
        notes.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    }
    if (shape.precision == Precision::float32 || shape.precision == Precision::float16) {
        notes.insert(notes.end(),
                     {CUDNN_NUMERICAL_NOTE_FFT, CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
                      CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13});
    }
    return notes;
}

}  // namespace finch::backend::cuda
