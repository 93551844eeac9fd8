#include "measurement.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"

#include "learner.hpp"
#include "prediction_table.hpp"
#include "samples.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace finch::train {
namespace {

void check_shape(const nn::ModelPlan& plan, const data::Dataset& dataset) {
    const nn::SampleShape shape{dataset.height, dataset.width, dataset.channels};
    if (shape != plan.input || dataset.outputs() != plan.classes) {
        const char* const what = dataset.targets.empty() ? "classes" : "numbers";
        throw ConfigError(
            fmt::format("the data set has images of ({}, {}, {}) with {} {}, but the model takes ({}, {}, {}) with {}",
                        shape.height, shape.width, shape.channels, dataset.outputs(), what, plan.input.height,
                        plan.input.width, plan.input.channels, plan.classes));
    }
}

/// Collective over the worker. What `make` makes on this rank; std::bad_alloc on all where one has not the memory.
template <class Make>
auto make_everywhere(const comm::Group& group, Make make) {
    decltype(make()) made;
    bool is_made = true;
    try {
        made = make();
    } catch (const std::bad_alloc&) {
        is_made = false;
    }
    if (group.maximum(is_made ? 0 : 1) != 0) {
        throw std::bad_alloc();
    }
    return made;
}

/// Collective over the worker. Does `work` on this rank; StorageError on all where images cannot be read on one.
template <class Work>
void read_everywhere(const comm::Group& group, Work work) {
    std::string problem;
    try {
        work();
    } catch (const StorageError& error) {
        problem = error.what();
    }
    if (group.maximum(problem.empty() ? 0 : 1) != 0) {
        for (const std::string& said : comm::gather_all(group.get(), problem)) {
            problem = problem.empty() ? said : problem;
        }
        throw StorageError(problem);
    }
}

}  // namespace

Measured measure_model(backend::Device& device, const comm::Group& group, nn::Model& model, const Recipe& recipe,
                       const data::Dataset& dataset, std::span<const std::int64_t> samples) {
    check_shape(model.plan(), dataset);
    std::vector<std::int64_t> all(samples.empty() ? static_cast<std::size_t>(dataset.samples()) : 0);
    std::iota(all.begin(), all.end(), 0);
    samples = samples.empty() ? std::span<const std::int64_t>(all) : samples;
    const auto batch = static_cast<std::size_t>(model.plan().batch);
    const auto classes = static_cast<std::size_t>(model.plan().classes);
    std::unique_ptr<backend::StepContext> context;
    const auto predictions = make_everywhere(group, [&] {
        context = device.make_step_context(images_of(dataset, recipe.data), model.plan().batch);
        return std::make_unique<PredictionTable>(std::ssize(samples), model.plan().classes, dataset.targets.empty());
    });
    const data::Share share = data::share_of(0, std::ssize(samples), group.rank(), group.size());
    const auto end = static_cast<std::size_t>(share.end);
    std::vector<float> logits(batch * classes);
    const auto batch_at = [&](std::size_t begin) {
        const auto part = samples.subspan(begin, std::min(batch, end - begin));
        std::vector<std::int64_t> indices(batch, -1);
        std::copy(part.begin(), part.end(), indices.begin());
        return indices;
    };
    const auto announce_after = [&](std::size_t begin) {
        std::vector<std::int64_t> coming;
        const std::size_t ahead = dataset.store ? static_cast<std::size_t>(recipe.data.prefetch.batches) : 0;
        for (begin += batch; begin < end && coming.size() < ahead * batch; begin += batch) {
            const auto indices = batch_at(begin);
            coming.insert(coming.end(), indices.begin(), indices.end());
        }
        context->announce(coming);
    };
    const auto measure_batch = [&](std::size_t begin) {
        const auto part = samples.subspan(begin, std::min(batch, end - begin));
        context->fill(batch_at(begin), std::array<backend::StepScalars, 1>{});
        announce_after(begin);
        evaluate_step(device, *context, model, recipe.training.loss);
        device.synchronize();
        device.download(model.logits(), std::span(logits).first(part.size() * classes));
        for (std::size_t i = 0; i < part.size(); ++i) {
            predictions->add(begin + i, std::span(logits).subspan(i * classes, classes),
                             dataset.labels.empty() ? 0 : dataset.labels[static_cast<std::size_t>(part[i])]);
        }
    };
    read_everywhere(group, [&] {
        for (auto begin = static_cast<std::size_t>(share.begin); begin < end; begin += batch) {
            measure_batch(begin);
        }
    });

    const backend::LossSums sums = context->sums();
    std::array loss{sums.loss};
    std::array counts{sums.correct, sums.samples};
    group.sum(loss);
    group.sum(counts);
    predictions->gather(group);
    const auto counted = static_cast<double>(counts[1]);
    Measured measured{.loss = loss[0] / counted,
                      .accuracy = dataset.targets.empty() ? static_cast<double>(counts[0]) / counted
                                                          : std::numeric_limits<double>::quiet_NaN(),
                      .samples = counts[1]};
    std::move(*predictions).move_to(measured);
    return measured;
}

Measured measure(backend::Device& device, const comm::Group& group, const Recipe& recipe, const NamedArrays& weights,
                 const data::Dataset& dataset, std::int64_t batch, std::span<const std::int64_t> samples) {
    const nn::SampleShape input{dataset.height, dataset.width, dataset.channels};
    const auto planned = make_everywhere(group, [&] {
        auto made = std::make_unique<nn::Model>(device, nn::plan_model(recipe.model, input, dataset.outputs(), batch));
        made->set_state(nn::read_tensors(made->plan(), weights));
        return made;
    });
    return measure_model(device, group, *planned, recipe, dataset, samples);
}

}  // namespace finch::train
