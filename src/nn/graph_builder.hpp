#pragma once

#include "finch/nn/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace finch::nn {

/// Puts a ModelPlan together, node by node.
class GraphBuilder {
public:
    GraphBuilder(SampleShape input, std::int64_t classes, std::int64_t batch, Numerics numerics);

    /// As far as it is: offsets follow with finish().
    [[nodiscard]] const ModelPlan& plan() const noexcept { return plan_; }

    /// A tensor of the node that is pushed next. `size` and `offset` are not looked at.
    void add_tensor(TensorInfo tensor);
    void add_counter(std::string name) { plan_.counters.push_back(std::move(name)); }
    /// A node that reads the values `inputs`. Returns the value that it makes.
    std::size_t push(backend::OperationShape operation, SampleShape out, std::vector<std::size_t> inputs);

    /// Places everything in its arena and counts the bytes.
    [[nodiscard]] ModelPlan finish() &&;

private:
    void place_parameters();
    void count_bytes();

    Numerics numerics_;
    ModelPlan plan_;
    std::vector<bool> learns_before_;        ///< by value: whether a parameter has a part in it
    std::vector<std::size_t> tensor_nodes_;  ///< by tensor
    std::int64_t new_parameters_ = 0;        ///< of the node that is pushed next
    std::int64_t new_buffers_ = 0;
};

/// Sets where the plan's values and their gradients lie, so that those that are alive at the same moment of a training
/// step do not overlap, and `activations`.
void place_activations(ModelPlan& plan);

}  // namespace finch::nn
