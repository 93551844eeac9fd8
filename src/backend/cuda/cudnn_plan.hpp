#pragma once

#include "finch/backend/operation.hpp"

#include "cudnn_rules.hpp"
#include "libraries.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace finch::backend::cuda {

enum class ConvolutionPass { forward, data_gradient, weight_gradient };
enum class TensorLayout {
    nhwc,
    nchw
};  ///< of activations; weights: (out, kernel, kernel, in) or (out, in, kernel, kernel)
enum class TensorType { float32, bfloat16, float16 };

/// One pass of a convolution as it is asked of cuDNN.
struct CudnnRequest {
    ConvolutionPass pass = ConvolutionPass::forward;
    ConvolutionShape shape;  ///< its channels with what pads them
    TensorLayout layout = TensorLayout::nhwc;
    TensorType type = TensorType::float32;    ///< of what it reads, but for the bias; sums are float32
    TensorType output = TensorType::float32;  ///< of what it writes
    bool is_fused = false;                    ///< forward: bias and activation in the same plan
};

/// What a pass reads and writes: device memory.
struct CudnnTensors {
    void* x = nullptr;        ///< the input; data_gradient: its gradient, written
    void* weights = nullptr;  ///< weight_gradient: their gradient, written
    void* bias = nullptr;     ///< float32 (channels_out), where the pass is fused
    void* y = nullptr;        ///< forward: the output, written; else its gradient
};

/// A plan of one pass: cuDNN's choice, made once for a device.
class CudnnPass {
public:
    virtual ~CudnnPass() = default;
    [[nodiscard]] virtual std::size_t workspace_bytes() const = 0;
    [[nodiscard]] virtual std::string engine() const = 0;
    /// Puts it in line on `stream`.
    virtual void run(cudaStream_t stream, const CudnnTensors& tensors, void* workspace) = 0;
};

/// By heuristics, the best first; only engines as exact and as reproducible as the shape asks. Null if cuDNN has
/// none.
[[nodiscard]] std::unique_ptr<CudnnPass> plan_cudnn_pass(Libraries& libraries, const CudnnRequest& request);

}  // namespace finch::backend::cuda
