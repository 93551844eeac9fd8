#include "learner.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

namespace finch::train {

Learner::Learner(backend::Device& device, comm::AllReduce& all_reduce, nn::ModelPlan plan, const Options& options,
                 const data::Dataset& dataset, const data::Options& normalisation, std::span<const float> class_weights,
                 RandomSource random, Profile* profile)
    : device_(device),
      all_reduce_(all_reduce),
      profile_(profile),
      device_timer_(profile != nullptr ? device.make_lap_timer() : nullptr),
      timer_(device_timer_ ? static_cast<backend::LapTimer*>(device_timer_.get()) : profile),
      model_(device, std::move(plan)),
      optimizer_(device, options.optimizer, model_.plan(),
                 {.clip_norm = options.clip_norm, .decay_all = options.decay_all}),
      random_(random),
      loss_(options.loss),
      label_smoothing_(static_cast<float>(options.label_smoothing)),
      micro_batches_(options.micro_batches),
      batches_ahead_(dataset.store ? normalisation.prefetch.batches : 0),
      scales_loss_(scales_loss(options)),
      sums_(device, all_reduce, model_, options.micro_batches, timer_),
      labels_(loss_ == Loss::cross_entropy ? std::span<const std::int32_t>(dataset.labels)
                                           : std::span<const std::int32_t>()),
      class_counts_(labels_.empty() ? 0 : static_cast<std::size_t>(model_.plan().classes)) {
    backend::Images images = images_of(dataset, normalisation);
    backend::Images distorted = distorted_images_of(dataset, normalisation);
    for (backend::Images* const each : {&images, &distorted}) {
        each->class_weights.assign(class_weights.begin(), class_weights.end());
    }
    training_.context = device.make_step_context(distorted, model_.plan().batch);
    if (most_training_steps() < 1) {
        throw ConfigError(
            fmt::format("training.micro_batches: {} parts of {} images are more than the device takes at "
                        "once; fewer parts, or a smaller batch, would do",
                        micro_batches_, model_.plan().batch));
    }
    if (scales_loss_) {
        set_loss_scale(backend::LossScale::initial());
    }
    if (const std::int64_t floats = added_gradients(model_.plan().parameters, options); floats > 0) {
        added_grads_ = device.allocate(static_cast<std::size_t>(floats));
    }
    training_.step = device.capture([this] { train_once(); }, all_reduce.capture_as());
    validation_.context = device.make_step_context(images, model_.plan().batch);
    validation_.step = device.capture([this] { evaluate_step(device_, *validation_.context, model_, loss_, timer_); },
                                      backend::CaptureAs::graph);
    if (options.average) {
        // pack() is captured as calls, not as a graph: it stores the addresses of the weights on the host, for graphs
        // that are captured later.
        average_.emplace(device, model_.plan(), *options.average);
        pack_own_ = device.capture([this] { model_.pack(); }, backend::CaptureAs::calls);
        pack_average_ = device.capture([this] { average_->pack_into(model_); }, backend::CaptureAs::calls);
    }
}

/// Waits for the device, because enqueued work uses the memory that is freed now.
Learner::~Learner() {
    try {
        device_.synchronize();
    } catch (const std::exception&) {
        // The device has failed, so no work is running any more. The next call of the device reports the failure.
    }
}

nn::ModelState Learner::state() const {
    return counted(model_.state());
}

nn::ModelState Learner::validated_state() const {
    return counted(average_ && average_->taken() > 0 ? average_->state() : model_.state());
}

nn::ModelState Learner::counted(nn::ModelState state) const {
    state.batches = optimizer_.steps() * micro_batches_;
    return state;
}

void Learner::set_state(const nn::ModelState& state) {
    model_.set_state(state);
    packed_ = Packed::own;
}

/// Enqueues the packing of `weights`. Steps that are already enqueued still use the weights packed before.
void Learner::pack(Packed weights) {
    if (average_ && packed_ != weights) {
        (weights == Packed::own ? pack_own_ : pack_average_)->run(1);
        packed_ = weights;
    }
}

void Learner::train(std::span<const std::int64_t> indices, std::span<const StepPlan> parts) {
    scalars_.clear();
    for (const StepPlan& part : parts) {
        if (std::ssize(scalars_) % micro_batches_ == 0) {
            const auto number = static_cast<std::uint32_t>(optimizer_.steps());
            RandomStream random(random_.seed, Purpose::dropout, random_.individual, number);
            scalars_.push_back({.grad_scale = static_cast<float>(1.0 / part.batch_weight),
                                .label_smoothing = label_smoothing_,
                                .optimizer = optimizer_.next(part.learning_rate),
                                .average_share = average_ ? average_->next() : 0,
                                .random_key = {random.bits(), random.bits()}});
        } else {
            scalars_.push_back(scalars_.back());
        }
        scalars_.back().first_sample = part.first_sample;
    }
    attempt([this] { pack(Packed::own); });
    run(training_, indices, std::ssize(scalars_) / micro_batches_);
}

void Learner::validate(std::span<const std::int64_t> indices) {
    scalars_.assign(indices.size() / static_cast<std::size_t>(model_.plan().batch), {});
    validated_.assign(indices.begin(), indices.end());
    attempt([&] {
        pack(Packed::average);
        run(validation_, indices, std::ssize(scalars_));
    });
}

void Learner::run(Work& work, std::span<const std::int64_t> indices, std::int64_t steps) {
    fill(work, indices);
    if (device_timer_) {
        profile_->hand_over();
    }
    work.step->run(steps);
    work.is_under_way = true;
}

/// Assigns images to the next steps. If the images cannot be read, assigns only padding, so that no other rank waits.
void Learner::fill(Work& work, std::span<const std::int64_t> indices) {
    try {
        work.context->fill(indices, scalars_);
    } catch (const StorageError&) {
        failure_ = std::current_exception();
        failed_ = true;
        work.context->fill(std::vector<std::int64_t>(indices.size(), -1), scalars_);
    }
}

/// Returns the largest number of batches per call. Streamed batches are limited to the number that is read in advance:
/// with more, the device would wait for files.
std::int64_t Learner::most_batches(const Work& work) const {
    const std::int64_t most = work.context->capacity();
    return batches_ahead_ > 0 ? std::min(most, std::max(batches_ahead_, micro_batches_)) : most;
}

double Learner::synchronize() {
    all_reduce_.synchronize();
    device_.synchronize();
    if (validation_.is_under_way && !failed_) {
        count_classes();
    }
    double seconds = 0;
    for (Work* work : {&training_, &validation_}) {
        seconds += std::exchange(work->is_under_way, false) ? work->step->seconds() : 0;
    }
    if (device_timer_) {
        profile_->take_back(device_timer_->take());
    }
    return seconds;
}

void Learner::count_classes() {
    if (labels_.empty()) {
        return;
    }
    const std::vector<std::int32_t> guesses = validation_.context->predictions();
    for (std::size_t i = 0; i < validated_.size(); ++i) {
        if (validated_[i] >= 0) {
            const auto label = static_cast<std::size_t>(labels_[static_cast<std::size_t>(validated_[i])]);
            const auto guess = static_cast<std::size_t>(guesses[i]);
            ++class_counts_.at(label).samples;
            ++class_counts_.at(guess).guesses;
            class_counts_[label].hits += guess == label ? 1 : 0;
        }
    }
}

backend::LossSums Learner::sums(const Work& work) const {
    backend::LossSums sums = work.context->sums();
    if (failed_) {
        sums.loss = std::numeric_limits<double>::quiet_NaN();
    }
    return sums;
}

void Learner::set_sums(const backend::LossSums& training, const backend::LossSums& validation,
                       std::span<const ClassCounts> classes) {
    training_.context->set_sums(training);
    validation_.context->set_sums(validation);
    std::fill(class_counts_.begin(), class_counts_.end(), ClassCounts{});
    std::copy(classes.begin(), classes.end(), class_counts_.begin());
}

std::optional<backend::LossScale> Learner::loss_scale() const {
    return scales_loss_ ? std::optional(training_.context->loss_scale()) : std::nullopt;
}

void Learner::throw_failure() {
    if (failure_) {
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }
}

void Learner::enter(backend::Activity activity) {
    if (timer_ != nullptr) {
        timer_->enter({activity});
    }
}

/// Executes one training step. The step is captured once and repeated many times.
void Learner::train_once() {
    const backend::LapScope step(timer_, backend::Activity::data);
    sums_.begin();
    attempt([this] {
        for (std::int64_t part = 1; part <= micro_batches_; ++part) {
            compute_grads(part == micro_batches_);
        }
    });
    enter(backend::Activity::all_reduce);
    sums_.finish(failed_);
    enter(backend::Activity::optimizer);
    attempt([this] {
        if (micro_batches_ > 1) {
            device_.clear(added_grads_.data(), added_grads_.size());
        }
        if (scales_loss_) {
            // The summed gradients are bitwise equal on all ranks, so all ranks make the same decision to skip the
            // step, without a message.
            device_.unscale(*training_.context, model_.grads().data(), model_.grads().size());
        }
        optimizer_.apply(*training_.context, model_.parameters(), model_.grads());
        model_.pack();
        if (average_) {
            average_->apply(*training_.context, model_);
        }
    });
}

template <class Action>
void Learner::attempt(Action&& action) {
    if (all_reduce_.is_graph_capturable()) {
        action();  // no peer waits for this host, and the capture of the step needs the exception
    } else if (!failed_) {
        try {
            action();
        } catch (const std::exception&) {
            failure_ = std::current_exception();
            failed_ = true;
        }
    }
}

/// Computes the gradients of the next part of the batch. After the last part, grads() is the sum over all parts.
void Learner::compute_grads(bool is_last) {
    const backend::Pass pass{.step = *training_.context,
                             .mode = backend::Mode::training,
                             .group = all_reduce_.is_of_one_rank() ? nullptr : &sums_,
                             .timer = timer_};
    enter(backend::Activity::data);
    device_.next_step(pass.step);
    model_.compute_grads(pass, losses_of(device_, model_, loss_), [&](std::int64_t begin, std::int64_t end) {
        const auto count = static_cast<std::size_t>(end - begin);
        float* const now = model_.grads().data() + begin;
        if (!is_last) {
            device_.accumulate(now, added_grads_.data() + begin, count);
            return;
        }
        if (micro_batches_ > 1) {
            device_.accumulate(added_grads_.data() + begin, now, count);
        }
        sums_.grads_ready(end);
    });
}

nn::Model::AddLosses losses_of(backend::Device& device, const nn::Model& model, Loss loss) {
    return
        [&device, outputs = model.plan().classes, loss](backend::StepContext& step, const float* logits, float* grad) {
            switch (loss) {
                case Loss::cross_entropy:
                    return device.softmax_cross_entropy(step, logits, outputs, grad);
                case Loss::mean_squared_error:
                    return device.regression_loss(step, backend::Regression::squared, logits, outputs, grad);
                case Loss::mean_absolute_error:
                    return device.regression_loss(step, backend::Regression::absolute, logits, outputs, grad);
            }
        };
}

void evaluate_step(backend::Device& device, backend::StepContext& context, nn::Model& model, Loss loss,
                   backend::LapTimer* timer) {
    const backend::LapScope validation(timer, backend::Activity::validation);
    device.next_step(context);
    model.evaluate({.step = context, .mode = backend::Mode::validation}, losses_of(device, model, loss));
}

}  // namespace finch::train
