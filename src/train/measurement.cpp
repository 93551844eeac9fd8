#include "measurement.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/loss_order.hpp"
#include "finch/comm/group.hpp"
#include "finch/train/training.hpp"

#include "learner.hpp"
#include "samples.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace finch::train {
namespace {

/// The predictions of a model for each sample. One rank measures a sample and all others have 0, so a sum over the
/// ranks gathers them.
class PredictionTable {
public:
    /// `labelled`: true if the outputs are logits of classes, false if they are predicted targets.
    PredictionTable(std::int64_t samples, std::int64_t outputs, bool labelled);

    /// Local. Adds the outputs of a sample. `label` is the class of the sample, and is ignored for data with targets.
    void add(std::size_t sample, std::span<const float> outputs, std::int32_t label);
    /// Collective over the worker.
    void gather(const comm::Group& group);
    void move_to(Measured& measured) &&;

private:
    std::size_t outputs_;
    bool labelled_;
    std::vector<std::int64_t> predictions_;
    std::vector<std::int64_t> places_;
    std::vector<float> scores_;  ///< empty above most_scores
};

constexpr std::size_t scores_at_once = 1 << 18;

/// Writes the softmax of a sample's logits.
void write_scores(std::span<const float> logits, std::span<float> scores) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) {
        sum += std::exp(static_cast<double>(logit) - largest);
    }
    std::transform(logits.begin(), logits.end(), scores.begin(), [largest, sum](float logit) {
        return static_cast<float>(std::exp(static_cast<double>(logit) - largest) / sum);
    });
}

/// Returns the number of classes that rank before the class `label`: classes with a larger logit, and classes with a
/// lower index and an equal logit. A class also ranks before `label` if its logit or the logit of `label` is NaN.
std::int64_t place_of(std::size_t label, std::span<const float> logits) {
    std::int64_t place = 0;
    for (std::size_t one = 0; one < logits.size(); ++one) {
        const bool is_after = one < label ? logits[label] > logits[one] : logits[label] >= logits[one];
        place += one == label || is_after ? 0 : 1;
    }
    return place;
}

PredictionTable::PredictionTable(std::int64_t samples, std::int64_t outputs, bool labelled)
    : outputs_(static_cast<std::size_t>(outputs)),
      labelled_(labelled),
      predictions_(labelled ? static_cast<std::size_t>(samples) : 0),
      places_(predictions_.size()),
      scores_(samples <= most_scores / outputs ? static_cast<std::size_t>(samples * outputs) : 0) {}

void PredictionTable::add(std::size_t sample, std::span<const float> outputs, std::int32_t label) {
    const auto scores = scores_.empty() ? std::span<float>() : std::span(scores_).subspan(sample * outputs_, outputs_);
    if (!labelled_) {
        std::copy_n(outputs.begin(), scores.size(), scores.begin());
        return;
    }
    predictions_[sample] =
        std::max_element(outputs.begin(), outputs.end(), [](float a, float b) { return is_better_loss(-b, -a); }) -
        outputs.begin();
    places_[sample] = place_of(static_cast<std::size_t>(label), outputs);
    if (!scores.empty()) {
        write_scores(outputs, scores);
    }
}

void PredictionTable::gather(const comm::Group& group) {
    group.sum(predictions_);
    group.sum(places_);
    for (std::size_t begin = 0; group.size() > 1 && begin < scores_.size(); begin += scores_at_once) {
        const auto part = std::span(scores_).subspan(begin, std::min(scores_at_once, scores_.size() - begin));
        std::vector<double> sums(part.begin(), part.end());
        group.sum(sums);
        std::transform(sums.begin(), sums.end(), part.begin(), [](double sum) { return static_cast<float>(sum); });
    }
}

void PredictionTable::move_to(Measured& measured) && {
    measured.predictions.assign(predictions_.begin(), predictions_.end());
    measured.places.assign(places_.begin(), places_.end());
    measured.scores = std::move(scores_);
}

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

/// Collective over the worker. Returns the result of `make` on this rank. Throws std::bad_alloc on all ranks if one
/// rank has too little memory.
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

/// Collective over the worker. Calls `work` on this rank. Throws StorageError on all ranks if one rank cannot read
/// images.
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
        auto made = std::make_unique<nn::Model>(
            device, nn::plan_model(recipe.model, input, dataset.outputs(), batch, {}, device.blocks()));
        made->set_state(nn::read_tensors(made->plan(), weights));
        return made;
    });
    return measure_model(device, group, *planned, recipe, dataset, samples);
}

}  // namespace finch::train
