#include "finch/nn/optimizer.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <cstddef>
#include <map>

namespace finch::nn {
namespace {

NamedArray download(backend::Device& device, const backend::Buffer& buffer, const char* name) {
    std::vector<float> values(buffer.size());
    device.download(buffer.data(), values);
    return {.name = name, .shape = {static_cast<std::int64_t>(values.size())}, .values = std::move(values)};
}

void upload(backend::Device& device, const NamedArrays& state, const char* name, const backend::Buffer& buffer) {
    const NamedArray& array = find_array(state, name);
    const auto* values = std::get_if<std::vector<float>>(&array.values);
    if (values == nullptr || values->size() != buffer.size()) {
        throw FileError(fmt::format("the array {} is not the optimizer's state of {} floats", name, buffer.size()));
    }
    device.upload(*values, buffer.data());
}

}  // namespace

Optimizer::Optimizer(backend::Device& device, const backend::Optimizer& rule, const ModelPlan& plan,
                     const OptimizerLimits& limits)
    : device_(device), rule_(rule), limits_(limits) {
    const auto parameters = static_cast<std::size_t>(plan.parameters);
    const int states = std::visit([](const auto& known) { return known.states(); }, rule);
    if (states > 0) {
        state_a_ = device.allocate(parameters);
    }
    if (states > 1) {
        state_b_ = device.allocate(parameters);
    }
    if (limits.clip_norm) {
        clip_scratch_ = device.allocate(backend::Device::clip_scratch);
    }
    const bool decays = std::visit([](const auto& known) { return known.weight_decay > 0; }, rule);
    ranges_ = limits.decay_all || !decays ? std::vector<backend::ParameterRange>{{.begin = 0, .size = parameters}}
                                          : ranges_of(plan);
}

/// Returns the ranges of the parameter arena, each with or without weight decay. Weights of convolutions and linear
/// layers decay; tensors with one axis (biases and normalisations) do not.
std::vector<backend::ParameterRange> Optimizer::ranges_of(const ModelPlan& plan) {
    std::map<std::int64_t, const TensorInfo*> tensors;  // by offset in the arena
    for (const TensorInfo& tensor : plan.tensors) {
        if (tensor.learns) {
            tensors[tensor.offset] = &tensor;
        }
    }
    std::vector<backend::ParameterRange> ranges;
    for (const auto& [offset, tensor] : tensors) {
        const bool is_weight = tensor->shape.size() > 1;
        if (ranges.empty() || ranges.back().decays != is_weight) {
            ranges.push_back({.begin = static_cast<std::size_t>(offset), .decays = is_weight});
        }
        ranges.back().size += static_cast<std::size_t>(tensor->size);
    }
    return ranges;
}

backend::OptimizerScalars Optimizer::next(double learning_rate) {
    ++steps_;
    return std::visit([&](const auto& rule) { return rule.scalars(learning_rate, steps_); }, rule_);
}

void Optimizer::apply(backend::StepContext& step, std::span<float> parameters, std::span<float> grads) {
    if (limits_.clip_norm) {
        device_.clip_norm(grads.data(), grads.size(), *limits_.clip_norm, clip_scratch_.data());
    }
    device_.optimizer_step(step, rule_, ranges_, parameters.data(), grads.data(), state_a_.data(), state_b_.data());
}

NamedArrays Optimizer::state() const {
    NamedArrays arrays{{.name = "optimizer/step", .shape = {}, .values = std::vector<std::int64_t>{steps_}}};
    if (state_a_.size() > 0) {
        arrays.push_back(download(device_, state_a_, "optimizer/state_a"));
    }
    if (state_b_.size() > 0) {
        arrays.push_back(download(device_, state_b_, "optimizer/state_b"));
    }
    return arrays;
}

void Optimizer::set_state(const NamedArrays& state) {
    const auto* steps = std::get_if<std::vector<std::int64_t>>(&find_array(state, "optimizer/step").values);
    if (steps == nullptr || steps->size() != 1 || steps->front() < 0) {
        throw FileError("the array optimizer/step is not a number of steps");
    }
    if (state_a_.size() > 0) {
        upload(device_, state, "optimizer/state_a", state_a_);
    }
    if (state_b_.size() > 0) {
        upload(device_, state, "optimizer/state_b", state_b_);
    }
    steps_ = steps->front();
}

}  // namespace finch::nn
