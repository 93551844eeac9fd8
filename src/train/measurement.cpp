#include "measurement.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "learner.hpp"
#include "samples.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace finch::train {
namespace {

void check_shape(const nn::ModelPlan& plan, const data::Dataset& dataset) {
    const nn::SampleShape shape{dataset.height, dataset.width, dataset.channels};
    if (shape != plan.input || dataset.outputs() != plan.classes) {
        const char* const what = dataset.targets.empty() ? "classes" : "numbers";
        throw ConfigError(fmt::format(
            "the data set has images of ({}, {}, {}) with {} {}, but the model takes ({}, {}, {}) with {}",
            shape.height, shape.width, shape.channels, dataset.outputs(), what, plan.input.height, plan.input.width,
            plan.input.channels, plan.classes));
    }
}

/// The class with the largest logit of each of the first samples of the batch.
void predict(backend::Device& device, const nn::Model& model, std::span<std::int64_t> predictions) {
    const auto classes = static_cast<std::size_t>(model.plan().classes);
    std::vector<float> logits(predictions.size() * classes);
    device.download(model.logits(), logits);
    for (std::size_t i = 0; i < predictions.size(); ++i) {
        const auto first = logits.begin() + static_cast<std::ptrdiff_t>(i * classes);
        predictions[i] = std::max_element(first, first + static_cast<std::ptrdiff_t>(classes)) - first;
    }
}

}  // namespace

Measured measure_model(backend::Device& device, const comm::Group& group, nn::Model& model, const Recipe& recipe,
                       const data::Dataset& dataset) {
    check_shape(model.plan(), dataset);
    const std::int64_t batch = model.plan().batch;
    const auto context = device.make_step_context(images_of(dataset, recipe.data), batch);
    const data::Share share = data::share_of(0, dataset.samples(), group.rank(), group.size());
    // A sample is predicted by one rank and is 0 on the others, so the sum over ranks gathers.
    std::vector<std::int64_t> predictions(static_cast<std::size_t>(dataset.samples()));
    for (std::int64_t begin = share.begin; begin < share.end; begin += batch) {
        const auto count = static_cast<std::size_t>(std::min(batch, share.end - begin));
        std::vector<std::int64_t> indices(static_cast<std::size_t>(batch), -1);
        std::iota(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(count), begin);
        context->fill(indices, std::array<backend::StepScalars, 1>{});
        evaluate_step(device, *context, model, recipe.training.loss);
        device.synchronize();
        predict(device, model, std::span(predictions).subspan(static_cast<std::size_t>(begin), count));
    }

    const backend::LossSums sums = context->sums();
    std::array loss{sums.loss};
    std::array counts{sums.correct, sums.samples};
    group.sum(loss);
    group.sum(counts);
    group.sum(predictions);
    const auto all = static_cast<double>(counts[1]);
    return {.loss = loss[0] / all,
            .accuracy = dataset.targets.empty() ? static_cast<double>(counts[0]) / all
                                                : std::numeric_limits<double>::quiet_NaN(),
            .samples = counts[1],
            .predictions = std::vector<std::int32_t>(predictions.begin(), predictions.end())};
}

Measured measure(backend::Device& device, const comm::Group& group, const Recipe& recipe, const NamedArrays& weights,
                 const data::Dataset& dataset, std::int64_t batch) {
    const nn::SampleShape input{dataset.height, dataset.width, dataset.channels};
    nn::Model planned(device, nn::plan_model(recipe.model, input, dataset.outputs(), batch));
    planned.set_state(nn::read_tensors(planned.plan(), weights));
    return measure_model(device, group, planned, recipe, dataset);
}

}  // namespace finch::train
