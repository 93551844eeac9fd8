#include "finch/train/recipe.hpp"

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

}  // namespace finch::train
