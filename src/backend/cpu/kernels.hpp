#pragma once

#include <cstdint>

namespace finch::backend::cpu {

/// One pass through a 3 × 3 convolution with stride 1: from (batch, height, width, channels) to (batch, height_out,
/// width_out, channels_out), NHWC. Tiles of m × m outputs are numbered by sample, row and column.
struct ConvolutionPass {
    std::int64_t height = 1, width = 1, channels = 1;              ///< of `from`
    std::int64_t height_out = 1, width_out = 1, channels_out = 1;  ///< of `to`
    std::int64_t padding = 1;                                      ///< above and to the left
    std::int64_t tile_rows = 1, tile_columns = 1;
};

/// Winograd's F(m × m, 3 × 3) with channels along the vectors, directly on NHWC. `channels` and `channels_out` are at
/// least Kernels::lanes. The memory `scratch` has scratch_floats() floats.
struct ChannelsKernels {
    std::int64_t tile;  ///< m
    std::int64_t (*packed_floats)(const ConvolutionPass& pass);
    std::int64_t (*scratch_floats)(const ConvolutionPass& pass);
    std::int64_t (*sums_floats)(const ConvolutionPass& pass);
    /// Transforms the canonical weights. `rotated`: for the gradient of x.
    void (*pack)(const ConvolutionPass& pass, const float* weights, bool rotated, float* packed);
    /// Computes the tiles [first, behind). `bias` may be null.
    void (*run)(const ConvolutionPass& pass, const float* from, const float* packed, const float* bias, bool has_relu,
                float* to, std::int64_t first, std::int64_t behind, float* scratch);
    /// Adds the tiles [first, behind) to the sums of the gradients. If `y` is not null, grad_y is first replaced by the
    /// gradient before the relu that gave y.
    void (*add_gradient)(const ConvolutionPass& pass, const float* x, const float* y, float* grad_y, std::int64_t first,
                         std::int64_t behind, float* sums, float* scratch);
    /// Writes the canonical gradients of weights and bias.
    void (*write_gradient)(const ConvolutionPass& pass, const float* sums, float* grad_weights, float* grad_bias);
};

/// The layout of one sample in planes: (channel, row parity, column parity, row, column). Row and column are those of
/// the padded image, divided by 2. A tile is 2 × 2 outputs; tile (row, column) has the number row · pitch + column. One
/// column of tiles per row is idle: it is written as 0, which is the padding at the left of the next row. So the
/// padding of an output is complete, and the output can be the input of the next convolution.
struct PlanesGeometry {
    std::int64_t pitch = 2;  ///< tiles of a row, including the idle one
    std::int64_t tiles = 2;  ///< of all rows, including the idle ones
    std::int64_t plane = 0;  ///< floats of one parity of rows and columns of a channel
    /// (2 × 2, plane): −1 if that output of a tile lies in the image, otherwise 0.
    const std::int32_t* inside = nullptr;
};

/// One pass through a 3 × 3 convolution with stride 1 over a sample in planes.
struct PlanesPass {
    std::int64_t channels = 1;      ///< of `from`
    std::int64_t channels_out = 1;  ///< of `to`
    PlanesGeometry geometry;        ///< of `from` and `to`
};

/// Winograd's F(2 × 2, 3 × 3) on planes, for one sample per call.
struct PlanesKernels {
    std::int64_t (*scratch_floats)(const PlanesPass& pass);
    std::int64_t (*sums_floats)(const PlanesPass& pass);
    /// See ChannelsKernels. `packed` has 16 · channels · channels_out floats.
    void (*pack)(const PlanesPass& pass, const float* weights, bool rotated, float* packed);
    void (*run)(const PlanesPass& pass, const float* from, const float* packed, const float* bias, bool has_relu,
                float* to, float* scratch);
    void (*add_gradient)(const PlanesPass& pass, const float* x, const float* y, float* grad_y, float* sums,
                         float* scratch);
    void (*write_gradient)(const PlanesPass& pass, const float* sums, float* grad_weights, float* grad_bias);
    /// Converts a sample from NHWC to planes, with `padding` rows above and columns to the left.
    void (*fill)(const PlanesGeometry& at, std::int64_t padding, std::int64_t height, std::int64_t width,
                 std::int64_t channels, const float* nhwc, float* planes);
    /// Converts an output from planes to NHWC.
    void (*read)(const PlanesGeometry& at, std::int64_t height, std::int64_t width, std::int64_t channels,
                 const float* planes, float* nhwc);
};

/// The sizes of a convolution without groups and dilation, for DirectKernels.
struct DirectPass {
    std::int64_t height = 1, width = 1, channels = 1;              ///< of x
    std::int64_t height_out = 1, width_out = 1, channels_out = 1;  ///< of y
    std::int64_t kernel = 1, stride = 1, padding_before = 0, padding_after = 0;
};

/// The gradient of a convolution's weights and bias, computed directly.
struct DirectKernels {
    std::int64_t (*scratch_floats)(const DirectPass& pass);
    std::int64_t (*sums_floats)(const DirectPass& pass);
    /// Adds one sample to the sums.
    void (*add)(const DirectPass& pass, const float* x, const float* grad_y, float* sums, float* scratch);
    /// Writes the canonical gradients.
    void (*write)(const DirectPass& pass, const float* sums, float* grad_weights, float* grad_bias);
};

/// Finch's own kernels for one instruction set.
struct Kernels {
    std::int64_t lanes;  ///< floats of a vector
    const char* name;
    ChannelsKernels channels_2, channels_4;  ///< F(2 × 2, 3 × 3), F(4 × 4, 3 × 3)
    PlanesKernels planes;
    DirectKernels direct;
};

/// Returns the kernels of the widest instruction set that the processor has and DNNL_MAX_CPU_ISA allows.
[[nodiscard]] const Kernels& kernels();

namespace avx512 {
extern const Kernels own_kernels;
}
namespace avx2 {
extern const Kernels own_kernels;
}
namespace baseline {
extern const Kernels own_kernels;
}

}  // namespace finch::backend::cpu
