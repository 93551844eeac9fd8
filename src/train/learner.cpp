#include "learner.hpp"

#include "finch/base/random.hpp"

#include <cstddef>
#include <limits>
#include <utility>

namespace finch::train {

Learner::Learner(backend::Device& device, comm::AllReduce& all_reduce, nn::ModelPlan plan, const Options& options,
                 const data::Dataset& dataset, const data::Options& normalisation, RandomSource random)
    : device_(device),
      all_reduce_(all_reduce),
      model_(device, std::move(plan)),
      optimizer_(device, options.optimizer, model_.plan(),
                 {.clip_norm = options.clip_norm, .decay_all = options.decay_all}),
      random_(random),
      label_smoothing_(static_cast<float>(options.label_smoothing)),
      sums_(device, all_reduce, model_) {
    const backend::Images images = images_of(dataset, normalisation);
    const auto how = all_reduce.is_graph_capturable() ? backend::CaptureAs::graph : backend::CaptureAs::calls;
    training_.context = device.make_step_context(distorted_images_of(dataset, normalisation), model_.plan().batch);
    training_.step = device.capture([this] { train_once(); }, how);
    validation_.context = device.make_step_context(images, model_.plan().batch);
    validation_.step =
        device.capture([this] { evaluate_step(device_, *validation_.context, model_); }, backend::CaptureAs::graph);
}

/// What is under way uses the memory that goes now.
Learner::~Learner() {
    try {
        device_.synchronize();
    } catch (const std::exception&) {
        // The device has failed: nothing is under way any more, and who asks it next is told.
    }
}

nn::ModelState Learner::state() const {
    nn::ModelState state = model_.state();
    state.batches = optimizer_.steps();
    return state;
}

void Learner::train(std::span<const std::int64_t> indices, std::span<const StepPlan> steps) {
    scalars_.clear();
    for (const StepPlan& step : steps) {
        const auto number = static_cast<std::uint32_t>(optimizer_.steps());
        RandomStream random(random_.seed, Purpose::dropout, random_.individual, number);
        scalars_.push_back({.grad_scale = static_cast<float>(1.0 / static_cast<double>(step.batch_samples)),
                            .label_smoothing = label_smoothing_,
                            .optimizer = optimizer_.next(step.learning_rate),
                            .random_key = {random.bits(), random.bits()},
                            .first_sample = step.first_sample});
    }
    run(training_, indices);
}

void Learner::validate(std::span<const std::int64_t> indices) {
    scalars_.assign(indices.size() / static_cast<std::size_t>(model_.plan().batch), {});
    attempt([&] { run(validation_, indices); });
}

void Learner::run(Work& work, std::span<const std::int64_t> indices) {
    work.context->fill(indices, scalars_);
    work.step->run(static_cast<std::int64_t>(scalars_.size()));
    work.is_under_way = true;
}

double Learner::synchronize() {
    all_reduce_.synchronize();
    device_.synchronize();
    double seconds = 0;
    for (Work* work : {&training_, &validation_}) {
        seconds += std::exchange(work->is_under_way, false) ? work->step->seconds() : 0;
    }
    return seconds;
}

backend::LossSums Learner::sums(const Work& work) const {
    backend::LossSums sums = work.context->sums();
    if (failed_) {
        sums.loss = std::numeric_limits<double>::quiet_NaN();
    }
    return sums;
}

void Learner::set_sums(const backend::LossSums& training, const backend::LossSums& validation) {
    training_.context->set_sums(training);
    validation_.context->set_sums(validation);
}

void Learner::throw_failure() {
    if (failure_) {
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }
}

/// One step: captured once, done many times.
void Learner::train_once() {
    sums_.begin();
    attempt([this] { compute_grads(); });
    sums_.finish(failed_);
    attempt([this] {
        optimizer_.apply(*training_.context, model_.parameters(), model_.grads());
        model_.pack();
    });
}

template <class Action>
void Learner::attempt(Action&& action) {
    if (all_reduce_.is_graph_capturable()) {
        action();  // no peer waits for this host's part, and who records the step must hear of it
    } else if (!failed_) {
        try {
            action();
        } catch (const std::exception&) {
            failure_ = std::current_exception();
            failed_ = true;
        }
    }
}

void Learner::compute_grads() {
    const backend::Pass pass{.step = *training_.context, .mode = backend::Mode::training, .group = &sums_};
    device_.next_step(pass.step);
    device_.load_batch(pass.step, model_.input());
    model_.forward(pass);
    device_.softmax_cross_entropy(pass.step, model_.logits(), model_.plan().classes, model_.grad_logits());
    model_.backward(pass, [&](std::int64_t /*begin*/, std::int64_t end) { sums_.grads_ready(end); });
}

void evaluate_step(backend::Device& device, backend::StepContext& context, nn::Model& model) {
    device.next_step(context);
    device.load_batch(context, model.input());
    model.forward({.step = context, .mode = backend::Mode::validation});
    device.softmax_cross_entropy(context, model.logits(), model.plan().classes, nullptr);
}

}  // namespace finch::train
