#include "finch/train/recipe.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace finch::train {

nn::ModelPlan plan_training(const Recipe& recipe, nn::SampleShape input, std::int64_t classes, std::int64_t batch,
                            backend::Blocks blocks) {
    const Options& options = recipe.training;
    nn::ModelPlan plan =
        nn::plan_model(recipe.model, input, classes, batch, {options.precision, options.deterministic}, blocks);
    constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));
    plan.bytes += added_gradients(plan.parameters, options) * float_bytes;
    if (options.average) {
        const std::int64_t average_bytes = (plan.parameters + plan.buffers) * float_bytes;
        plan.bytes += average_bytes;
        plan.snapshot_bytes += 2 * average_bytes;  // as arrays and as the bytes of a file
    }
    return plan;
}

bool can_continue(const Recipe& child, const Recipe& parent, std::int64_t epochs, nn::SampleShape input,
                  std::int64_t classes) {
    const auto states_of = [](const Recipe& recipe) {
        return std::pair(recipe.training.optimizer.index(),
                         std::visit([](const auto& rule) { return rule.states(); }, recipe.training.optimizer));
    };
    data::Options data = child.data;
    data.augmentation = parent.data.augmentation;
    if (child.training.epochs <= epochs || states_of(child) != states_of(parent) || !(data == parent.data) ||
        child.training.average.has_value() != parent.training.average.has_value() ||
        scales_loss(child.training) != scales_loss(parent.training) || child.training.watch != parent.training.watch) {
        return false;
    }
    const nn::ModelPlan ours = nn::plan_model(child.model, input, classes, 1);
    const nn::ModelPlan theirs = nn::plan_model(parent.model, input, classes, 1);
    return ours.counters == theirs.counters &&
           std::ranges::equal(ours.tensors, theirs.tensors, [](const nn::TensorInfo& a, const nn::TensorInfo& b) {
               return a.name == b.name && a.shape == b.shape;
           });
}

}  // namespace finch::train
