#include "finch/nn/optimizer.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <cstddef>

namespace finch::nn {
namespace {

backend::OptimizerStep describe(const SgdOptions& options, double rate, std::int64_t step) {
    return backend::SgdStep{.learning_rate = static_cast<float>(rate),
                            .momentum = static_cast<float>(options.momentum),
                            .weight_decay = static_cast<float>(options.weight_decay),
                            .nesterov = options.nesterov,
                            .first = step == 1};
}

template <class Options>
backend::AdamStep describe_adam(const Options& options, double rate, std::int64_t step) {
    return {.learning_rate = static_cast<float>(rate),
            .beta1 = options.beta1,
            .beta2 = options.beta2,
            .epsilon = static_cast<float>(options.epsilon),
            .weight_decay = static_cast<float>(options.weight_decay),
            .step = step};
}
backend::OptimizerStep describe(const AdamOptions& options, double rate, std::int64_t step) {
    return describe_adam(options, rate, step);
}
backend::OptimizerStep describe(const AdamWOptions& options, double rate, std::int64_t step) {
    backend::AdamStep adam = describe_adam(options, rate, step);
    adam.decoupled = true;
    return adam;
}

backend::OptimizerStep describe(const AdadeltaOptions& options, double rate, std::int64_t /*step*/) {
    return backend::AdadeltaStep{.learning_rate = static_cast<float>(rate),
                                 .rho = static_cast<float>(options.rho),
                                 .epsilon = static_cast<float>(options.epsilon),
                                 .weight_decay = static_cast<float>(options.weight_decay)};
}

/// How many arrays of the parameters' size the optimizer keeps.
int state_arrays(const OptimizerOptions& options) {
    if (const auto* sgd = std::get_if<SgdOptions>(&options)) {
        return sgd->momentum == 0 ? 0 : 1;
    }
    return 2;
}

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

Optimizer::Optimizer(backend::Device& device, const OptimizerOptions& options, std::int64_t parameters)
    : device_(device), options_(options) {
    const int arrays = state_arrays(options);
    if (arrays > 0) {
        state_a_ = device.allocate(static_cast<std::size_t>(parameters));
    }
    if (arrays > 1) {
        state_b_ = device.allocate(static_cast<std::size_t>(parameters));
    }
}

backend::OptimizerStep Optimizer::next(double learning_rate) {
    ++steps_;
    return std::visit([&](const auto& known) { return describe(known, learning_rate, steps_); }, options_);
}

void Optimizer::apply(backend::Feed& feed, std::span<float> parameters, std::span<const float> grads) {
    device_.optimizer_step(feed, parameters.data(), grads.data(), state_a_.data(), state_b_.data(), parameters.size());
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
