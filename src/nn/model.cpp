#include "finch/nn/model.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace finch::nn {
namespace {

std::size_t floats(std::int64_t batch, const SampleShape& shape) {
    return static_cast<std::size_t>(batch * shape.size());
}

std::unique_ptr<backend::Operation> plan_operation(backend::Device& device, const backend::ConvolutionShape& shape) {
    return device.convolution(shape);
}
std::unique_ptr<backend::Operation> plan_operation(backend::Device& device, const backend::PoolingShape& shape) {
    return device.pooling(shape);
}
std::unique_ptr<backend::Operation> plan_operation(backend::Device& device, const backend::LinearShape& shape) {
    return device.linear(shape);
}
std::unique_ptr<backend::Operation> plan_operation(backend::Device& device, const backend::ActivationShape& shape) {
    return device.activation(shape);
}

}  // namespace

std::int64_t memory_bytes(backend::Device& device, const ModelPlan& plan) {
    std::int64_t scratch = 0;
    for (const PlannedLayer& layer : plan.layers) {
        std::visit(
            [&](const auto& shape) {
                if constexpr (requires { device.scratch_bytes(shape); }) {
                    scratch = std::max(scratch, device.scratch_bytes(shape));
                }
            },
            layer.shape);
    }
    return plan.bytes + scratch;
}

Model::Model(backend::Device& device, ModelPlan plan)
    : device_(device),
      plan_(std::move(plan)),
      parameters_(device.allocate(static_cast<std::size_t>(plan_.parameters))),
      grads_(device.allocate(static_cast<std::size_t>(plan_.parameters))) {
    const auto first = std::find_if(plan_.layers.begin(), plan_.layers.end(),
                                    [](const PlannedLayer& layer) { return layer.parameters > 0; });
    first_trained_ = static_cast<std::size_t>(first - plan_.layers.begin());
    outputs_.push_back(device.allocate(floats(plan_.batch, plan_.input)));
    std::array<std::size_t, 2> largest{};
    for (std::size_t i = 0; i < plan_.layers.size(); ++i) {
        const PlannedLayer& layer = plan_.layers[i];
        operations_.push_back(
            std::visit([&](const auto& shape) { return plan_operation(device, shape); }, layer.shape));
        outputs_.push_back(device.allocate(floats(plan_.batch, layer.out)));
        if (i >= first_trained_) {
            largest[(i + 1) % 2] = std::max(largest[(i + 1) % 2], floats(plan_.batch, layer.out));
        }
    }
    grad_outputs_ = {device.allocate(largest[0]), device.allocate(largest[1])};
}

void Model::pack() {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
        if (plan_.layers[i].parameters > 0) {
            operations_[i]->pack(parameters_.data() + plan_.layers[i].parameters_offset);
        }
    }
}

void Model::forward() {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
        operations_[i]->forward(outputs_[i].data(), outputs_[i + 1].data());
    }
}

void Model::backward(const std::function<void(std::int64_t begin, std::int64_t end)>& ready) {
    for (std::size_t i = operations_.size(); i-- > first_trained_;) {
        const PlannedLayer& layer = plan_.layers[i];
        operations_[i]->backward(outputs_[i].data(), outputs_[i + 1].data(), grad_outputs_[(i + 1) % 2].data(),
                                 grad_outputs_[i % 2].data(), grads_.data() + layer.parameters_offset);
        if (layer.parameters > 0) {
            ready(layer.parameters_offset, layer.parameters_offset + layer.parameters);
        }
    }
}

NamedArrays Model::tensors() const {
    std::vector<float> arena(parameters_.size());
    device_.download(parameters_.data(), arena);
    return name_tensors(plan_, arena);
}

void Model::set_tensors(const NamedArrays& tensors) {
    std::vector<float> arena(parameters_.size());
    read_tensors(plan_, tensors, "", arena);
    device_.upload(arena, parameters_.data());
}

}  // namespace finch::nn
