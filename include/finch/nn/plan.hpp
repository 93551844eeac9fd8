#pragma once

#include "finch/backend/operation.hpp"
#include "finch/base/error.hpp"
#include "finch/nn/spec.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace finch::nn {

/// The shape of one sample: (height, width, channels).
struct SampleShape {
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels = 1;
    [[nodiscard]] std::int64_t size() const noexcept { return height * width * channels; }
    bool operator==(const SampleShape&) const = default;
};

/// A tensor of the model with its name and shape in PyTorch: "0.weight" (out, in, kernel, kernel), "0.bias" (out),
/// "1.running_mean", "3.body.0.weight". The numbers in the names count the modules of the equivalent nn.Sequential.
/// Every conv, activation, pool, flatten, linear, batch_norm, dropout and block is one module. The module of a block
/// has a `body`, an nn.Sequential, and a `shortcut`, a layer or nn.Identity.
struct TensorInfo {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t offset = 0;  ///< in floats, in the arena of the parameters or of the buffers
    std::int64_t size = 0;    ///< in floats
    bool learns = true;       ///< true: a parameter; false: a buffer, which forward() updates in training
    std::int64_t fan_in = 0;  ///< inputs per output, for Initialization; 0: all values start as `initial`
    float initial = 0;
};

/// A tensor of the graph: the input of the model, or the output of an operation.
struct Value {
    SampleShape shape;
    std::int64_t offset = 0;  ///< in floats, in the arena of activations
    backend::Layout layout = backend::Layout::nhwc;
    backend::TensorType type = backend::TensorType::float32;  ///< of the value and its gradient

    /// Returns how many elements `samples` samples have in memory.
    [[nodiscard]] std::int64_t elements(std::int64_t samples) const noexcept {
        return samples * (layout == backend::Layout::nhwc
                              ? shape.size()
                              : shape.channels * backend::PlanesSize(shape.height, shape.width).floats_per_channel());
    }
    /// Returns how many floats of memory `samples` samples take.
    [[nodiscard]] std::int64_t floats(std::int64_t samples) const noexcept {
        return type == backend::TensorType::float32 ? elements(samples) : (elements(samples) + 1) / 2;
    }
};

/// The buffer to which the backward of a node writes the gradient of one of the node's inputs.
struct InputGrad {
    std::int64_t offset = 0;   ///< in floats, in the arena of activations
    std::int64_t add_to = -1;  ///< offset of the gradient to which it is added afterwards; −1: none
    bool is_needed = false;
};

/// One operation of the model, with its inputs, output and memory.
struct Node {
    backend::OperationShape operation;
    std::vector<std::size_t> inputs;  ///< indices in ModelPlan::values
    std::size_t output = 0;           ///< index in ModelPlan::values
    std::int64_t parameters_offset = 0;
    std::int64_t parameters = 0;  ///< number of floats
    std::int64_t buffers_offset = 0;
    std::int64_t buffers = 0;            ///< number of floats
    bool has_backward = true;            ///< this node, or a node before it, has parameters
    std::int64_t grad_output = 0;        ///< offset of the gradient of `output`, in floats, in the arena of activations
    std::vector<InputGrad> grad_inputs;  ///< per input
};

/// A model with all shapes for one batch size. A batch is computed as blocks of samples, so that the activations
/// of a block stay in the cache. The model is a directed acyclic graph of operations. The nodes are in
/// the order of forward; backward runs in reverse order. In the arenas of parameters and gradients, the last node comes
/// first, because backward computes its gradients first. Activations and their gradients share one arena, which reuses
/// the memory of tensors that are no longer needed.
struct ModelPlan {
    std::vector<Node> nodes;
    std::vector<Value> values;          ///< the first is the input, the last the logits
    std::vector<TensorInfo> tensors;    ///< in PyTorch's order (first module first)
    std::vector<std::string> counters;  ///< names of batch counters: "1.num_batches_tracked"
    SampleShape input;
    std::int64_t classes = 0;  ///< number of outputs: the classes, or the numbers of a target
    std::int64_t batch = 0;
    std::int64_t block = 0;        ///< number of samples of a block: the batch of all operations
    std::int64_t replicas = 1;     ///< number of blocks that are computed at the same time, with memory of their own
    std::int64_t parameters = 0;   ///< floats of the arena of parameters (or gradients)
    std::int64_t buffers = 0;      ///< floats of the arena of buffers
    std::int64_t activations = 0;  ///< floats of the arena of activations and their gradients, of one block
    std::int64_t grad_logits = 0;  ///< offset of the logits' gradient in the arena of activations
    /// Bytes of device memory that a training of this model needs on one rank: arenas, optimizer state, packed weights.
    std::int64_t bytes = 0;
    /// Bytes of host memory that a training needs in addition while it makes a snapshot or resumes from one.
    std::int64_t snapshot_bytes = 0;

    /// Returns the number of blocks of a batch.
    [[nodiscard]] std::int64_t blocks() const noexcept { return (batch + block - 1) / block; }
};

/// The numerical options of a model's operations.
struct Numerics {
    backend::Precision precision = backend::Precision::float32;
    bool deterministic = true;  ///< results are bitwise reproducible
};

/// The error for a network that cannot exist.
class ModelError : public ConfigError {
public:
    ModelError(std::int64_t layer, const std::string& what) : ConfigError(what), layer_(layer) {}
    /// Index of the layer in the configuration's list; −1 if the error is not about one layer.
    [[nodiscard]] std::int64_t layer() const noexcept { return layer_; }

private:
    std::int64_t layer_;
};

/// Infers and checks every shape, and plans the memory. The last layer must output (1, 1, classes) without an
/// activation. Throws ModelError. The message of the ModelError names the layer by its place in the list ("model[2]
/// (max_pool)", "model[3].layers[0] (conv)"), the problem, and a valid alternative. `blocks` are those of the device.
[[nodiscard]] ModelPlan plan_model(const ModelSpec& spec, SampleShape input, std::int64_t classes, std::int64_t batch,
                                   Numerics numerics = {}, backend::Blocks blocks = {});

/// Returns a lower bound for the bytes of activations and gradients that an operation moves in a training step of
/// plan.batch samples: each pass reads or writes each of its tensors once.
[[nodiscard]] std::int64_t least_bytes(const ModelPlan& plan, const Node& node);

}  // namespace finch::nn
