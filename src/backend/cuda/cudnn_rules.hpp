#pragma once

#include "finch/backend/operation.hpp"

#include <cstdint>
#include <vector>

// Which of cuDNN's engines a convolution may use.
namespace finch::backend::cuda {

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
