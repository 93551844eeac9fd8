#pragma once

#include "finch/backend/operation.hpp"
#include "finch/base/error.hpp"
#include "finch/nn/spec.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace finch::nn {

/// One sample: (height, width, channels).
struct SampleShape {
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels = 1;
    [[nodiscard]] std::int64_t size() const noexcept { return height * width * channels; }
    bool operator==(const SampleShape&) const = default;
};

/// A tensor of the model under PyTorch's name and in its shape: "0.weight" (out, in, kernel, kernel), "0.bias" (out),
/// "1.running_mean", "3.body.0.weight". The numbers count the modules of the equivalent nn.Sequential, in which every
/// conv, activation, pool, flatten, linear, batch_norm, dropout and block is one module; a block is a module whose
/// `body` is an nn.Sequential and whose `shortcut` is a layer or nn.Identity.
struct TensorInfo {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t offset = 0;  ///< in floats, into the arenas of the parameters, or into that of the buffers
    std::int64_t size = 0;    ///< in floats
    bool learns = true;       ///< a parameter; else a buffer, which forward() changes in training
    std::int64_t fan_in = 0;  ///< initial values are uniform within ±1/√fan_in; 0: all are `initial`
    float initial = 0;
};

/// A tensor that goes from one operation to the next.
struct Value {
    SampleShape shape;
    std::int64_t offset = 0;  ///< in floats, into the arena of activations
};

/// Buffer to which a node's backward writes the gradient of one of its inputs.
struct InputGrad {
    std::int64_t offset = 0;   ///< in floats, into the arena of activations
    std::int64_t add_to = -1;  ///< the gradient that it is then added to; −1: none
    bool is_needed = false;
};

/// One operation.
struct Node {
    backend::OperationShape operation;
    std::vector<std::size_t> inputs;  ///< values
    std::size_t output = 0;           ///< its value
    std::int64_t parameters_offset = 0;
    std::int64_t parameters = 0;  ///< floats
    std::int64_t buffers_offset = 0;
    std::int64_t buffers = 0;            ///< floats
    bool has_backward = true;            ///< it has parameters, or something before it has
    std::int64_t grad_output = 0;        ///< in floats, into the arena of activations
    std::vector<InputGrad> grad_inputs;  ///< by input
};

/// A model with every shape known, for one batch size: a directed acyclic graph, its nodes in an order in which forward
/// can go; backward goes the other way. In the arenas of parameters and gradients the last node comes first, in the
/// order in which backward makes the gradients. Activations and their gradients share one arena: what is not needed any
/// more makes room.
struct ModelPlan {
    std::vector<Node> nodes;
    std::vector<Value> values;          ///< the first is the input, the last the logits
    std::vector<TensorInfo> tensors;    ///< in PyTorch's order (first module first)
    std::vector<std::string> counters;  ///< "1.num_batches_tracked": how many batches it was trained with
    SampleShape input;
    std::int64_t classes = 0;  ///< outputs: one for each class, or for each number of a target
    std::int64_t batch = 0;
    std::int64_t parameters = 0;   ///< floats of one arena
    std::int64_t buffers = 0;      ///< floats
    std::int64_t activations = 0;  ///< floats of the arena of activations and their gradients
    std::int64_t grad_logits = 0;  ///< offset into it
    /// Bytes that a training of this model takes on one rank: arenas, optimizer's state, packed weights.
    std::int64_t bytes = 0;
    /// Bytes of the host that it takes besides, now and then: while a snapshot is made, or gone on from.
    std::int64_t snapshot_bytes = 0;
};

/// How a model's operations compute.
struct Numerics {
    backend::Precision precision = backend::Precision::float32;
    bool deterministic = true;  ///< the same bits each time
};

/// A network that cannot exist.
class ModelError : public ConfigError {
public:
    ModelError(std::int64_t layer, const std::string& what) : ConfigError(what), layer_(layer) {}
    /// Index of the layer in the configuration's list; −1: none of them.
    [[nodiscard]] std::int64_t layer() const noexcept { return layer_; }

private:
    std::int64_t layer_;
};

/// Infers and checks every shape, and plans the memory. Throws ModelError that names the layer by its place in the
/// list ("model[2] (max_pool)", "model[3].layers[0] (conv)"), what is wrong and what would be right. The last layer
/// must give (1, 1, classes) without an activation.
[[nodiscard]] ModelPlan plan_model(const ModelSpec& spec, SampleShape input, std::int64_t classes, std::int64_t batch,
                                   Numerics numerics = {});

}  // namespace finch::nn
