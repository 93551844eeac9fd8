#include "finch/train/training.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/out_of_memory.hpp"
#include "finch/nn/initialization.hpp"
#include "finch/train/class_weights.hpp"

#include "learner.hpp"
#include "measurement.hpp"
#include "watch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <new>
#include <utility>

namespace finch::train {
namespace {

void check(const Options& options, const data::Split& split) {
    if (options.epochs < 1 || options.batch_size < 1 || options.batch_size_per_rank.value_or(1) < 1) {
        throw ConfigError("training: epochs and batch sizes must be at least 1");
    }
    if (split.training.empty() || split.validation.empty()) {
        throw ConfigError(
            fmt::format("data: {} samples to train on and {} to validate on; both must be at least 1 "
                        "(data.validation_samples)",
                        split.training.size(), split.validation.size()));
    }
}

double scaled_rate(const Options& options, int ranks) {
    const double rate = options.learning_rate.value_or(
        std::visit([]<class Rule>(const Rule& /*rule*/) { return Rule::usual_rate; }, options.optimizer));
    if (!options.batch_size_per_rank) {
        return rate;
    }
    switch (options.scale_learning_rate) {
        case ScaleLearningRate::none:
            break;
        case ScaleLearningRate::sqrt:
            return rate * std::sqrt(static_cast<double>(ranks));
        case ScaleLearningRate::linear:
            return rate * ranks;
    }
    return rate;
}

/// A guard that sets another model state in a learner, and restores the learner's own state in the destructor.
class BorrowedState {
public:
    BorrowedState(Learner& learner, const nn::ModelState& state) : learner_(learner), own_(learner.state()) {
        learner_.set_state(state);
    }
    ~BorrowedState() {
        try {
            learner_.set_state(own_);
        } catch (const std::exception& error) {
            spdlog::warn("a training could not take its weights back: {}", error.what());
        }
    }
    BorrowedState(const BorrowedState&) = delete;
    BorrowedState& operator=(const BorrowedState&) = delete;

private:
    Learner& learner_;
    nn::ModelState own_;
};

}  // namespace

void check_precision(Precision precision, const backend::Device& device, const std::string& processor) {
    if (device.supports(precision)) {
        return;
    }
    if (precision == Precision::bfloat16) {
        throw ConfigError(
            fmt::format("training.precision: bfloat16 needs AVX512-BF16 or AMX, and {} has neither (or "
                        "DNNL_MAX_CPU_ISA forbids them); write float32, or use GPUs (workers.device: cuda)",
                        processor));
    }
    throw ConfigError(
        fmt::format("training.precision: {} needs GPUs (workers.device: cuda); write float32, or "
                    "bfloat16 where processors have AVX512-BF16 or AMX",
                    word(precision)));
}

Training::Training(backend::Device& device, const comm::Group& group, comm::AllReduce& all_reduce,
                   const data::Datasets& datasets, Recipe recipe, HostMemory memory, Profile* profile)
    : device_(device),
      group_(group),
      all_reduce_(all_reduce),
      dataset_(datasets.training),
      recipe_(std::move(recipe)),
      memory_(memory),
      profile_(profile),
      split_(data::split(recipe_.data, dataset_, recipe_.seed)),
      shares_(data::shares_of(recipe_.data, dataset_, split_)),
      class_weights_(class_weights(recipe_.training, dataset_, split_.training)),
      global_batch_(global_batch_on(group.size(), recipe_.training)),
      initial_rate_(scaled_rate(recipe_.training, group.size())),
      stopping_{.patience = recipe_.training.patience},
      epoch_ranks_(group.size()) {
    check(recipe_.training, split_);
    check_precision(recipe_.training.precision, device);
    learner_ = make_learner(global_batch_);
    if (recipe_.training.watch) {
        watch_ = std::make_unique<Watch>(plan());
    }
    if (profile_ != nullptr) {
        profile_->set_model(plan());
    }
    loss_scale_ = learner_->loss_scale();
    const nn::ModelState initial =
        nn::initial_state(plan(), recipe_.seed, recipe_.individual, recipe_.training.initialization);
    learner_->set_state(initial);
    if (nn::WeightAverage* average = learner_->average(); average != nullptr && scales_loss(recipe_.training)) {
        average->set_state(initial, 0);  // value of the average until the first step that is not skipped
    }
}

Training::~Training() = default;

std::unique_ptr<Learner> Training::make_learner(std::int64_t global_batch) const {
    const std::int64_t rank_batch = rank_batch_of(global_batch, group_.size(), recipe_.training);
    const nn::SampleShape input{dataset_.height, dataset_.width, dataset_.channels};
    nn::ModelPlan plan = plan_training(recipe_, input, dataset_.outputs(), rank_batch, device_.blocks());
    check_memory(plan);
    return std::make_unique<Learner>(device_, all_reduce_, std::move(plan), recipe_.training, dataset_, recipe_.data,
                                     class_weights_, RandomSource{recipe_.seed, recipe_.individual}, profile_);
}

void Training::check_memory(const nn::ModelPlan& plan) const {
    std::int64_t needed = nn::memory_bytes(device_, plan);
    if (device_.is_host()) {
        // Snapshots are made one after the other, so the memory for the largest is enough.
        needed += std::max(plan.snapshot_bytes, memory_.reserved) - memory_.returning;
        needed += data::prefetch_bytes(recipe_.data, dataset_, plan.batch);
    }
    if (const std::int64_t free = device_.free_bytes(); needed > free) {
        throw OutOfMemory(needed, free);
    }
}

void Training::begin_with(const NamedArrays& weights) {
    const nn::ModelState state = nn::read_tensors(plan(), weights);
    learner_->set_state(state);
    if (nn::WeightAverage* average = learner_->average()) {
        average->set_state(state, 1);
    }
}

State Training::advance(std::int64_t steps) {
    const std::size_t epochs = curve_.size();
    validation_steps_ = 0;
    if (failure_) {
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }
    finish_steps();
    // A rank with a NaN loss continues too, because its peers wait for it in collectives.
    while (steps > 0 && !ended_ && !epoch_is_over_ && !(pauses_ && curve_.size() > epochs)) {
        const bool trains = position_.phase == Phase::training;
        steps -= trains ? ask_for_training(steps) : ask_for_validation(steps);
        if (!device_.runs_ahead()) {
            finish_steps();
        } else if (!trains || position_.phase == Phase::training) {
            break;  // at most one train() and one validate() can be in flight
        } else if (learner_->training_waits()) {
            validation_steps_ = steps;  // a step of validation would launch the training steps too early
            break;
        }
    }
    learner_->throw_failure();
    return state();
}

void Training::enqueue_validation() {
    try {
        if (const std::int64_t steps = std::exchange(validation_steps_, 0); steps > 0) {
            ask_for_validation(steps);
        }
    } catch (const std::exception&) {
        failure_ = std::current_exception();
    }
}

/// Enqueues training steps. Returns the number of enqueued steps: at most `steps`, and only steps of the present epoch.
std::int64_t Training::ask_for_training(std::int64_t steps) {
    const backend::LapScope scope(profile_, backend::Activity::data);
    shuffle_epoch();
    steps = std::min(steps, learner_->most_training_steps());
    indices_.clear();
    step_plans_.clear();
    const std::int64_t parts = recipe_.training.micro_batches;
    const std::int64_t begin = position_.sample;
    while (std::ssize(step_plans_) < steps * parts && position_.sample < training_samples()) {
        const std::int64_t end = std::min(position_.sample + global_batch_, training_samples());
        const double weight = batch_weight(end);
        for (const data::Share& share : parts_of_batch(position_.sample, end)) {
            add_training_images(share, indices_);
            step_plans_.push_back({.batch_weight = weight,
                                   .first_sample = share.begin - position_.sample,
                                   .learning_rate = learning_rate(position_.sample)});
        }
        position_.sample = end;
    }
    learner_->train(indices_, step_plans_);
    if (profile_ != nullptr) {
        profile_->count_training(position_.sample - begin);
    }
    announce_training();
    if (position_.sample == training_samples()) {
        position_.phase = Phase::validation;
        position_.sample = 0;
        training_is_over_ = true;
    }
    steps_asked_ += std::ssize(step_plans_) / parts;
    return std::ssize(step_plans_) / parts;
}

std::int64_t Training::ask_for_validation(std::int64_t steps) {
    const backend::LapScope scope(profile_, backend::Activity::validation);
    steps = std::min(steps, learner_->most_validation_steps());
    std::int64_t asked = 0;
    const std::int64_t begin = position_.sample;
    indices_.clear();
    for (; asked < steps && position_.sample < validation_samples(); ++asked) {
        add_validation_images(position_.sample, indices_);
        position_.sample = std::min(position_.sample + plan().batch * group_.size(), validation_samples());
    }
    learner_->validate(indices_);
    if (profile_ != nullptr) {
        profile_->count_validation(position_.sample - begin);
    }
    announce_validation();
    epoch_is_over_ = position_.sample == validation_samples();
    steps_asked_ += asked;
    return asked;
}

/// Waits for the enqueued steps and adds their results. If these steps end an epoch, the group decides how to continue.
void Training::finish_steps() {
    if (steps_asked_ == 0) {
        return;
    }
    const double seconds = learner_->synchronize();
    steps_done_ += std::exchange(steps_asked_, 0);
    step_seconds_ += seconds;
    sums_ = {learner_->training_sums(), learner_->validation_sums(), sums_.seconds + seconds};
    loss_scale_ = learner_->loss_scale();
    if (std::exchange(training_is_over_, false)) {
        watch_steps();
    }
    if (std::exchange(epoch_is_over_, false)) {
        end_epoch();
    }
    done_ = position_;
}

/// Validation does not change the gradients, so they are still those of the last training step.
void Training::watch_steps() {
    if (watch_) {
        const std::span<const float> grads = learner_->model().grads();
        std::vector<float> copy(grads.size());
        device_.download(grads.data(), copy);
        watch_->end_steps(copy);
    }
}

std::vector<Metric> Training::watched() const {
    return watch_ ? watch_->metrics() : std::vector<Metric>();
}

double Training::learning_rate(std::int64_t sample) const {
    const Options& options = recipe_.training;
    const std::int64_t steps = (training_samples() + global_batch_ - 1) / global_batch_;
    const std::int64_t step = position_.epoch * steps + sample / global_batch_;
    const bool by_step =
        options.pace == nn::Pace::step || std::holds_alternative<nn::OneCycleSchedule>(options.schedule);
    const double rate = nn::learning_rate(options.schedule, initial_rate_,
                                          {.unit = by_step ? step : position_.epoch,
                                           .units = options.epochs * (by_step ? steps : 1),
                                           .units_per_epoch = by_step ? steps : 1});
    const double warm_up = options.warm_up_epochs * static_cast<double>(steps);
    return static_cast<double>(step + 1) < warm_up ? rate * static_cast<double>(step + 1) / warm_up : rate;
}

const nn::ModelPlan& Training::plan() const noexcept {
    return learner_->model().plan();
}

State Training::state() const noexcept {
    if (ended_) {
        return *ended_;
    }
    const bool finite = std::isfinite(sums_.training.loss) && std::isfinite(sums_.validation.loss);
    return finite && !(loss_scale_ && loss_scale_->is_exhausted()) ? State::running : State::diverged;
}

std::int64_t Training::samples_trained() const noexcept {
    return samples_before_position() - inherited_epochs_ * training_samples();
}

std::int64_t Training::samples_before_position() const noexcept {
    return position_.epoch * training_samples() +
           (position_.phase == Phase::training ? position_.sample : training_samples());
}

EpochSoFar Training::epoch_so_far() const {
    const std::int64_t batches = (training_samples() + global_batch_ - 1) / global_batch_;
    if (done_.phase == Phase::training && done_.sample == 0) {
        return {
            .epoch = done_.epoch,
            .batch = done_.epoch > 0 ? batches : 0,
            .batches = batches,
            .samples = done_.epoch * training_samples(),
            .training_loss = curve_.empty() ? std::numeric_limits<double>::quiet_NaN() : curve_.back().training_loss};
    }
    const std::int64_t samples = done_.phase == Phase::training ? done_.sample : training_samples();
    const double mean_weight =
        weight_of(class_weights_, dataset_, split_.training) / static_cast<double>(training_samples());
    return {.epoch = done_.epoch + 1,
            .batch = (samples + global_batch_ - 1) / global_batch_,
            .batches = batches,
            .samples = done_.epoch * training_samples() + samples,
            .training_loss = sums_.training.loss / (static_cast<double>(sums_.training.samples) * mean_weight)};
}

double Training::progress() const noexcept {
    if (ended_) {
        return 1;
    }
    const std::int64_t validated =
        position_.epoch * validation_samples() + (position_.phase == Phase::validation ? position_.sample : 0);
    return static_cast<double>(samples_before_position() + validated) /
           static_cast<double>(recipe_.training.epochs * (training_samples() + validation_samples()));
}

NamedArrays Training::best_weights() const {
    return nn::name_tensors(plan(), best_epoch() > 0 ? best_state_ : learner_->validated_state());
}

Measured Training::measure(const data::Dataset& dataset) {
    finish_steps();
    const BorrowedState best(*learner_, best_epoch() > 0 ? best_state_ : learner_->validated_state());
    return measure_model(device_, group_, learner_->model(), recipe_, dataset);
}

}  // namespace finch::train
