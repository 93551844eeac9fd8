#include "grid.hpp"
#include "kernels/linear.hpp"
#include "number_of.hpp"
#include "operations.hpp"

#include <algorithm>
#include <limits>

namespace finch::backend::cuda {
namespace {

constexpr std::int64_t most_units = 32;
constexpr int blocks_per_multiprocessor = 4;  ///< enough to keep all multiprocessors busy to the end

/// The division of the work for one shape into blocks. A small batch is also divided into enough blocks to fill the
/// GPU.
struct LinearCuts {
    std::int64_t forward_parts;    ///< parts of the columns
    std::int64_t backward_parts;   ///< parts of the batch
    std::int64_t samples_of_part;  ///< samples per part in backward
    int forward_tile;              ///< units per block in forward
    int backward_tile;             ///< units per thread in backward

    LinearCuts(const LinearShape& shape, std::int64_t features, int multiprocessors) {
        const std::int64_t wanted = std::int64_t{blocks_per_multiprocessor} * multiprocessors;
        const std::int64_t tiles = groups_of(shape.units, 8);
        const auto per_tile = static_cast<int>(groups_of(shape.units, tiles));
        forward_tile = per_tile <= 2 ? 2 : per_tile <= 4 ? 4 : per_tile <= 6 ? per_tile : 8;
        const std::int64_t tiled = groups_of(shape.batch, LinearForwardPart<8>::samples) * tiles;
        forward_parts = std::clamp<std::int64_t>(groups_of(wanted, tiled), 1,
                                                 groups_of(features, LinearForwardPart<8>::max_threads));
        const std::int64_t columns = groups_of(features + 1, LinearBackward<8>::max_threads);
        // A part has at least two rounds of samples in shared memory: smaller parts do not justify a second kernel.
        backward_parts = std::clamp<std::int64_t>(
            wanted / columns, 1, std::max<std::int64_t>(1, shape.batch / (2 * LinearBackward<8>::samples)));
        samples_of_part = groups_of(shape.batch, backward_parts);
        backward_parts = groups_of(shape.batch, samples_of_part);
        const std::int64_t rounded = groups_of(shape.units, 4) * 4;
        backward_tile = static_cast<int>(rounded <= 16 ? rounded : groups_of(rounded, 8) * 8);
    }
};

std::size_t scratch_bytes_of(const LinearCuts& cuts, const LinearShape& shape, std::int64_t features) {
    const std::int64_t forward = cuts.forward_parts * shape.batch * shape.units;
    const std::int64_t backward = cuts.backward_parts == 1 ? 0 : cuts.backward_parts * shape.units * (features + 1);
    return static_cast<std::size_t>(std::max(forward, backward)) * sizeof(float);
}

class DirectLinear : public Operation {
public:
    DirectLinear(Stream& stream, const LinearShape& shape)
        : stream_(stream.get()),
          shape_(shape),
          sizes_{.batch = shape.batch,
                 .features = static_cast<int>(shape.height * shape.width * shape.channels),
                 .pixels = static_cast<int>(shape.height * shape.width),
                 .channels = static_cast<int>(shape.channels),
                 .units = static_cast<int>(shape.units)},
          cuts_(shape, sizes_.features, stream.facts().multiprocessors) {
        scratch_ = stream.scratch(scratch_bytes_of(cuts_, shape, sizes_.features));
    }

    /// Stores only the pointer, because the kernels read the parameters in place.
    void pack(const float* parameters, float* /*buffers*/) override { parameters_ = parameters; }

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        with_int<2, 4, 5, 6, 8>(cuts_.forward_tile, [&](auto tile) { forward_in_tiles<tile.value>(x[0], y); });
    }

    void backward(const Pass& /*pass*/, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        with_int<4, 8, 12, 16, 24, 32>(cuts_.backward_tile, [&](auto tile) {
            backward_in_parts<tile.value>(x[0], y, grad_y, grad_x[0], grad_parameters);
        });
    }

    [[nodiscard]] std::string implementation() const override { return "finch:direct_linear"; }

private:
    [[nodiscard]] float* partial() const { return static_cast<float*>(scratch_->get()); }

    template <int tile>
    void forward_in_tiles(const float* x, float* y) {
        using Part = LinearForwardPart<tile>;
        const Grid grid{.blocks_x = cuts_.forward_parts,
                        .blocks_y = groups_of(shape_.batch, Part::samples),
                        .blocks_z = groups_of(shape_.units, tile),
                        .threads = Part::max_threads,
                        .shared_bytes = Part::max_threads * Part::samples * tile * sizeof(float)};
        FINCH_CUDA(launch(stream_, grid, Part{.sizes = sizes_, .x = x, .weight = parameters_, .partial = partial()}));
        const std::int64_t outputs = shape_.batch * shape_.units;
        FINCH_CUDA(launch(
            stream_,
            {.blocks_x = groups_of(outputs, LinearForwardEnd::max_threads), .threads = LinearForwardEnd::max_threads},
            LinearForwardEnd{.outputs = outputs,
                             .units = sizes_.units,
                             .parts = static_cast<int>(cuts_.forward_parts),
                             .partial = partial(),
                             .bias = parameters_ + shape_.units * sizes_.features,
                             .activation = shape_.activation,
                             .y = y}));
    }

    template <int tile>
    void backward_in_parts(const float* x, const float* y, const float* grad_y, float* grad_x, float* grad_parameters) {
        using Kernel = LinearBackward<tile>;
        const bool in_parts = cuts_.backward_parts > 1;
        FINCH_CUDA(launch(stream_,
                          {.blocks_x = groups_of(sizes_.features + 1, Kernel::max_threads),
                           .blocks_y = cuts_.backward_parts,
                           .threads = Kernel::max_threads,
                           .shared_bytes = Kernel::samples * tile * sizeof(float)},
                          Kernel{.sizes = sizes_,
                                 .activation = shape_.activation,
                                 .samples_of_part = cuts_.samples_of_part,
                                 .x = x,
                                 .y = y,
                                 .grad_y = grad_y,
                                 .weight = parameters_,
                                 .grad_x = shape_.needs_input_grad ? grad_x : nullptr,
                                 .grad_parameters = grad_parameters,
                                 .partial = in_parts ? partial() : nullptr}));
        if (in_parts) {
            FINCH_CUDA(launch(stream_,
                              {.blocks_x = groups_of(sizes_.features + 1, LinearBackwardEnd::max_threads),
                               .blocks_y = shape_.units,
                               .threads = LinearBackwardEnd::max_threads},
                              LinearBackwardEnd{.sizes = sizes_,
                                                .parts = static_cast<int>(cuts_.backward_parts),
                                                .partial = partial(),
                                                .grad_parameters = grad_parameters}));
        }
    }

    cudaStream_t stream_;
    LinearShape shape_;
    LinearSizes sizes_;
    LinearCuts cuts_;
    const float* parameters_ = nullptr;
    std::shared_ptr<const Scratch> scratch_;
};

}  // namespace

bool direct_suits(const DeviceFacts& /*facts*/, const LinearShape& shape) {
    const std::int64_t features = shape.height * shape.width * shape.channels;
    return shape.units <= most_units && features < std::numeric_limits<int>::max() / 2 &&
           groups_of(shape.batch, LinearForwardPart<8>::samples) <= 65535;
}

OperationBytes direct_bytes(Stream& stream, const LinearShape& shape) {
    const std::int64_t features = shape.height * shape.width * shape.channels;
    const LinearCuts cuts(shape, features, stream.facts().multiprocessors);
    return {.scratch = scratch_bytes_of(cuts, shape, features)};
}

std::unique_ptr<Operation> make_direct(Stream& stream, const LinearShape& shape) {
    return std::make_unique<DirectLinear>(stream, shape);
}

}  // namespace finch::backend::cuda
