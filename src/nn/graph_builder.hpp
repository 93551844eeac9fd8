#pragma once

#include "finch/nn/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace finch::nn {

/// The builder of a ModelPlan, to which nodes are added one after the other.
class GraphBuilder {
public:
    GraphBuilder(SampleShape input, std::int64_t classes, std::int64_t batch, Numerics numerics);

    /// The plan so far, without offsets: finish() sets them.
    [[nodiscard]] const ModelPlan& plan() const noexcept { return plan_; }

    /// Adds a tensor of the node that is pushed next. Sets the `size` and `offset` of this tensor.
    void add_tensor(TensorInfo tensor);
    void add_counter(std::string name) { plan_.counters.push_back(std::move(name)); }
    /// Adds a node that reads the values `inputs`. Returns the index of the node's output value.
    std::size_t push(backend::OperationShape operation, SampleShape out, std::vector<std::size_t> inputs);

    /// Assigns all offsets in the arenas and counts the bytes.
    [[nodiscard]] ModelPlan finish() &&;

private:
    void place_parameters();
    void count_bytes();

    Numerics numerics_;
    ModelPlan plan_;
    std::vector<bool> learns_before_;        ///< per value: true if it depends on a parameter
    std::vector<std::size_t> tensor_nodes_;  ///< per tensor: its node
    std::int64_t new_parameters_ = 0;        ///< floats of the node that is pushed next
    std::int64_t new_buffers_ = 0;
};

/// Sets the offsets of the plan's values and their gradients, and ModelPlan::activations. Values that are needed at the
/// same time in a training step do not overlap.
void place_activations(ModelPlan& plan);

}  // namespace finch::nn
