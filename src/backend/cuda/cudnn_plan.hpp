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
enum class TensorType { float32, bfloat16, float16 };

/// One pass of a convolution as it is asked of cuDNN: activations NHWC, weights (out, kernel, kernel, in).
struct CudnnRequest {
    ConvolutionPass pass = ConvolutionPass::forward;
    ConvolutionShape shape;                   ///< its channels with what pads them
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

// Which of cuDNN's engines a convolution may use.

/// What an engine does to numbers: cuDNN's CUDNN_NUMERICAL_NOTE_*.
enum class EngineNote {
    tensor_core,
    down_convert_inputs,
    reduced_precision_reduction,
    fft,
    nondeterministic,
    winograd,
    winograd_tile_4x4,
    winograd_tile_6x6,
    winograd_tile_13x13
};

/// Of any engine: the workspace is a part of a stream's scratch memory, and is counted with it.
inline constexpr std::int64_t most_cudnn_workspace = std::int64_t{64} << 20;

/// What an engine must not do. Inputs are never narrowed behind the request's back (to half precision: gradients below
/// 6e-8 would vanish), and sums are float32, in every precision. What transforms its inputs does it in their type:
/// float16 has not the range.
[[nodiscard]] inline std::vector<EngineNote> barred_notes(const ConvolutionShape& shape) {
    std::vector<EngineNote> notes{EngineNote::down_convert_inputs, EngineNote::reduced_precision_reduction};
    if (shape.deterministic) {
        notes.push_back(EngineNote::nondeterministic);
    }
    if (shape.precision == Precision::float32) {
        notes.push_back(EngineNote::tensor_core);
    }
    if (shape.precision == Precision::float32 || shape.precision == Precision::float16) {
        notes.insert(notes.end(), {EngineNote::fft, EngineNote::winograd, EngineNote::winograd_tile_4x4,
                                   EngineNote::winograd_tile_6x6, EngineNote::winograd_tile_13x13});
    }
    return notes;
}

}  // namespace finch::backend::cuda
