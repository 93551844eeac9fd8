#include "finch/nn/average.hpp"

namespace finch::nn {

WeightAverage::WeightAverage(backend::Device& device, const ModelPlan& plan, double decay)
    : device_(device), weights_(device, plan), share_(static_cast<float>(1 - decay)) {}

float WeightAverage::next() noexcept {
    return taken_++ == 0 ? 1.0F : share_;
}

void WeightAverage::apply(backend::StepContext& step, const Model& model) {
    const Weights& present = model.weights();
    device_.average(step, present.parameters().data(), weights_.parameters().data(), present.parameters().size());
    if (!present.buffers().empty()) {
        device_.average(step, present.buffers().data(), weights_.buffers().data(), present.buffers().size());
    }
}

void WeightAverage::set_state(const ModelState& state, std::int64_t taken) {
    weights_.set_state(state);
    taken_ = taken;
}

}  // namespace finch::nn
