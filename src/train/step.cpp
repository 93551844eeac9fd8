#include "step.hpp"

#include <cstddef>
#include <limits>
#include <utility>

namespace finch::train {

Learner::Learner(backend::Device& device, comm::AllReduce& all_reduce, nn::ModelPlan plan,
                 const nn::OptimizerOptions& optimizer, const data::Dataset& dataset,
                 const data::Options& normalisation)
    : device_(device),
      all_reduce_(all_reduce),
      model_(device, std::move(plan)),
      optimizer_(device, optimizer, model_.plan().parameters),
      buckets_(model_.plan()) {
    const backend::Images images = images_of(dataset, normalisation);
    const auto recording = all_reduce.is_graph_capturable() ? backend::Recording::graph : backend::Recording::calls;
    training_.feed = device.make_feed(images, model_.plan().batch);
    training_.program = device.record([this] { train_once(); }, recording);
    validation_.feed = device.make_feed(images, model_.plan().batch);
    validation_.program = device.record(
        [this] {
            device_.gather(*validation_.feed, model_.input());
            model_.forward();
            device_.softmax_cross_entropy(*validation_.feed, model_.logits(), model_.plan().classes, nullptr);
        },
        backend::Recording::graph);
}

/// What is under way uses the memory that goes now.
Learner::~Learner() {
    try {
        device_.synchronize();
    } catch (const std::exception&) {
        // The device has failed: nothing is under way any more, and who asks it next is told.
    }
}

std::vector<float> Learner::weights() const {
    std::vector<float> weights(static_cast<std::size_t>(model_.plan().parameters));
    device_.download(model_.parameters().data(), weights);
    return weights;
}

void Learner::set_weights(std::span<const float> weights) {
    device_.upload(weights, model_.parameters().data());
    model_.pack();
}

void Learner::train(std::span<const std::int64_t> indices, std::span<const StepPlan> steps) {
    numbers_.clear();
    for (const StepPlan& step : steps) {
        numbers_.push_back({.grad_scale = static_cast<float>(1.0 / static_cast<double>(step.batch_samples)),
                            .optimizer = optimizer_.next(step.learning_rate)});
    }
    run(training_, indices);
}

void Learner::validate(std::span<const std::int64_t> indices) {
    numbers_.assign(indices.size() / static_cast<std::size_t>(model_.plan().batch), {});
    attempt([&] { run(validation_, indices); });
}

void Learner::run(Work& work, std::span<const std::int64_t> indices) {
    work.feed->fill(indices, numbers_);
    work.program->run(static_cast<std::int64_t>(numbers_.size()));
    work.is_under_way = true;
}

double Learner::synchronize() {
    all_reduce_.synchronize();
    device_.synchronize();
    double seconds = 0;
    for (Work* work : {&training_, &validation_}) {
        seconds += std::exchange(work->is_under_way, false) ? work->program->seconds() : 0;
    }
    return seconds;
}

backend::LossSums Learner::sums(const Work& work) const {
    backend::LossSums sums = work.feed->sums();
    if (failed_) {
        sums.loss = std::numeric_limits<double>::quiet_NaN();
    }
    return sums;
}

void Learner::set_sums(const backend::LossSums& training, const backend::LossSums& validation) {
    training_.feed->set_sums(training);
    validation_.feed->set_sums(validation);
}

void Learner::throw_failure() {
    if (failure_) {
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }
}

/// One step: recorded once, done many times.
void Learner::train_once() {
    static_cast<void>(buckets_.rest());  // begins anew whatever an attempt that failed has left
    attempt([this] { compute_grads(); });
    const std::span<const Bucket> rest = buckets_.rest();
    if (failed_) {
        zero_grads(rest);
    }
    reduce(rest);
    all_reduce_.wait();
    attempt([this] {
        optimizer_.apply(*training_.feed, model_.parameters(), model_.grads());
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
    device_.gather(*training_.feed, model_.input());
    model_.forward();
    device_.softmax_cross_entropy(*training_.feed, model_.logits(), model_.plan().classes, model_.grad_logits());
    model_.backward([&](std::int64_t /*begin*/, std::int64_t end) {
        reduce(buckets_.complete_until(end));
        all_reduce_.progress();
    });
}

void Learner::reduce(std::span<const Bucket> buckets) {
    for (const Bucket& bucket : buckets) {
        all_reduce_.start(model_.grads().subspan(static_cast<std::size_t>(bucket.begin),
                                                 static_cast<std::size_t>(bucket.end - bucket.begin)));
    }
}

void Learner::zero_grads(std::span<const Bucket> buckets) {
    for (const Bucket& bucket : buckets) {
        const std::vector<float> zeros(static_cast<std::size_t>(bucket.end - bucket.begin));
        device_.upload(zeros, model_.grads().data() + bucket.begin);
    }
}

}  // namespace finch::train
