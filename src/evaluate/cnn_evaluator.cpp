#include "finch/evaluate/cnn_evaluator.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/evaluate/fault.hpp"
#include "finch/store/model_file.hpp"

#include <algorithm>
#include <utility>

namespace finch::evaluate {
namespace {

/// The interval at which messages, signals and the clock are checked. An asynchronous device gets more steps per Order
/// (seconds_ahead), so it stays busy while the leader serves the other slots.
constexpr double seconds_between_polls = 0.005;
constexpr double seconds_ahead = 0.02;
constexpr double most_steps = 1000;  ///< per Order

search::Outcome outcome_of(Status status) {
    switch (status) {
        case Status::running:
            return search::Outcome::stopped;
        case Status::finished:
            return search::Outcome::evaluated;
        case Status::pruned:
            return search::Outcome::pruned;
        case Status::diverged:
            return search::Outcome::diverged;
        case Status::out_of_memory:
            return search::Outcome::out_of_memory;
        case Status::failed:
        case Status::storage:
            break;
    }
    return search::Outcome::failed;
}

/// Returns the number of training batches of all epochs so far.
std::int64_t batches_of(const train::EpochSoFar& epoch) {
    return std::max<std::int64_t>(0, epoch.epoch - 1) * epoch.batches + epoch.batch;
}

/// For a training with loss scaling, logs the number of skipped steps, or records as the problem that gradients
/// overflowed at every scale.
void tell_loss_scale(search::Individual& individual, const train::Training& training) {
    const std::optional<backend::LossScale>& scale = training.loss_scale();
    if (!scale || scale->skipped == 0) {
        return;
    }
    if (scale->is_exhausted()) {
        individual.problem = fmt::format("its gradients overflow float16 at every scale of the loss down to {:g}",
                                         backend::LossScale::least_scale);
    } else {
        spdlog::info(
            "{}: skipped {} of its steps, whose gradients overflowed float16; the scale of the loss ends at {:g}",
            to_text(individual.id), scale->skipped, scale->scale);
    }
}

}  // namespace

CnnEvaluator::CnnEvaluator(const config::Config& config, Slots& slots, const comm::Group& group,
                           store::RunDirectory directory, int worker, std::uint64_t run,
                           std::function<std::optional<search::Standing>()> best_known)
    : GroupEvaluator(config, group),
      slots_(slots),
      directory_(std::move(directory)),
      worker_(worker),
      run_(run),
      best_known_(std::move(best_known)),
      parent_weights_(directory_, run_),
      rung_snapshots_(directory_, run_),
      running_(static_cast<std::size_t>(config.workers.slots)) {}

void CnnEvaluator::set_sample_shape(nn::SampleShape sample, std::int64_t classes) {
    sample_ = sample;
    classes_ = classes;
}

bool CnnEvaluator::has_free_slot() const {
    return !waiting_ && GroupEvaluator::has_free_slot();
}

bool CnnEvaluator::idle() const {
    return failed_.empty() && !waiting_ && GroupEvaluator::idle();
}

bool CnnEvaluator::wants_soon() const {
    return std::any_of(running_.begin(), running_.end(), [](const Running& running) {
        return !running.used || (running.seconds_left > 0 && running.seconds_left < island::lease_ahead_seconds);
    });
}

bool CnnEvaluator::can_exist(const search::Genome& genome) const {
    return config::can_exist(config_, genome, sample_, classes_);
}

Status CnnEvaluator::command_one(const Order& order) {
    command(order);
    return status_;
}

bool CnnEvaluator::next_may_be_long() const {
    constexpr double long_step = 1;  // s
    return std::any_of(running_.begin(), running_.end(), [](const Running& running) {
        return running.used && (running.seconds_per_step <= 0 || running.seconds_per_step > long_step);
    });
}

/// Returns the snapshot from which `individual` resumes or continues, if any; else sets `order.weights`. Sets the
/// members of `individual` that depend on its beginning.
std::optional<store::ModelFile> CnnEvaluator::find_beginning(search::Individual& individual, Order& order) {
    auto saved = saved_training(individual);
    if (saved) {
        const bool has_time = saved->individual.started > 0;  // in an earlier start of the run
        individual.started = has_time ? saved->individual.started : individual.started;
        individual.inherited_from = saved->individual.inherited_from;
        individual.inherited_epochs = saved->individual.inherited_epochs;
        return saved;
    }
    saved = individual.is_heir() ? parents_training(individual) : std::nullopt;
    if (saved) {
        order.continues_parent = true;
        saved->individual.joules = 0;  // those of its parent
        return saved;
    }
    search::begin_anew(individual);
    order.weights = inherited_weights(individual);
    individual.inherited_from = order.weights.empty() ? search::Id{} : trained_parent(individual, known_population());
    return std::nullopt;
}

void CnnEvaluator::start(search::Individual individual) {
    Order order{.kind = Order::Kind::start, .slot = free_slot()};
    keep_alive(seconds_of_files);
    auto saved = find_beginning(individual, order);
    individual.started = individual.started > 0 ? individual.started : unix_seconds();
    order.individual = individual;
    die_of(individual.id);
    order.snapshot = saved ? std::move(saved->arrays) : NamedArrays{};
    Status status = command_one(order);
    if (status == Status::failed && !order.snapshot.empty()) {
        spdlog::warn("the snapshot of {} cannot be used ({}); it begins anew", to_text(individual.id),
                     slots_.problem());
        order.snapshot.clear();
        order.continues_parent = false;
        search::begin_anew(individual);
        status = command_one(order);
    }
    if (status == Status::out_of_memory && !GroupEvaluator::idle()) {
        waiting_ = std::move(individual);  // there may be memory once another training has ended
        return;
    }
    if (status == Status::storage) {
        throw StorageError(slots_.problem());
    }
    if (status != Status::running) {
        individual.outcome = outcome_of(status);
        individual.problem = slots_.problem();
        individual.finished = unix_seconds();
        individual.joules = individual.training_seconds > 0 ? individual.joules : 0;
        failed_.push_back(std::move(individual));
        return;
    }
    Running& running = running_[order.slot] = {};
    running.used = true;
    running.rung = individual.pruning->rung;
    running.epochs = individual.epochs;
    running.individual = std::move(individual);
    running.progress = slots_.training(order.slot).progress();
    running.logged = slots_.training(order.slot).epoch_so_far();
    running.joules_before = order.snapshot.empty() ? 0 : saved->individual.joules;
    set_pruner(order.slot);
    if (order.continues_parent) {
        const search::Individual& heir = running.individual;
        spdlog::info("{} continues {} from epoch {} on", to_text(heir.id), to_text(heir.inherited_from),
                     heir.inherited_epochs + 1);
        save(order.slot);  // from now on, it needs the snapshot of its parent no more
    } else if (!order.snapshot.empty()) {
        spdlog::info("{} resumes from its snapshot, {:.0f} % done", to_text(running.individual.id),
                     100 * running.progress);
    }
}

void CnnEvaluator::set_pruner(std::uint32_t slot) {
    if (!population_ || !search::prunes(config_.pruning)) {
        return;
    }
    slots_.training(slot).set_pruner([this, slot](std::span<const Epoch> curve, std::int64_t epochs) {
        std::vector<double> values;
        for (const Epoch& epoch : curve) {
            values.push_back(train::objective_value(std::get<train::Objective>(config_.objective), epoch));
        }
        if (!config_.costs.empty()) {
            describe_costs(slot, curve);
        }
        return search::ends_early(config_.pruning, values, epochs, population_(), running_[slot].individual);
    });
}

/// Sets what the costs of a running training need. `curve`: its epochs so far.
void CnnEvaluator::describe_costs(std::uint32_t slot, std::span<const Epoch> curve) {
    Running& running = running_[slot];
    const train::Training& training = slots_.training(slot);
    running.individual.parameters = training.plan().parameters;
    running.individual.training_seconds = training.training_seconds();
    running.individual.accuracy = curve.back().validation_accuracy;
    for (const search::Cost& cost : config_.costs) {
        if (cost.quantity == search::Quantity::f1) {
            running.individual.objective_metrics.at(cost.place) = curve.back().validation_f1;
        }
    }
    running.individual.joules = running.joules_before + slots_.joules_so_far(slot);
}

std::vector<search::Individual> CnnEvaluator::advance() {
    if (waiting_ && std::exchange(has_room_, false)) {
        start(*std::exchange(waiting_, std::nullopt));
    }
    std::vector<search::Individual> done = std::exchange(failed_, {});
    for (const std::uint32_t slot : used_slots()) {
        const Order::Steps steps{slot, steps_wanted(running_[slot]), running_[slot].training_seconds};
        const Status status = command_one({.kind = Order::Kind::advance, .steps = {steps}});
        measure(slot);
        log_batches(slot);
        if (status == Status::running && config_.inherit) {
            keep_at_rung(slot);
        }
        if (status == Status::storage) {
            const std::string problem = slots_.problem();
            release(slot);  // a later start resumes it from its last snapshot
            throw StorageError(problem);
        }
        if (status != Status::running) {
            slots_.launch_waiting_steps();  // so that the other slots compute while ended() writes files
            done.push_back(ended(slot, status));
        }
    }
    slots_.launch_waiting_steps();
    return done;
}

/// Returns the slots that train, sorted by their numbers of parameters. So networks of one shape advance one after
/// another, and their gang is launched as soon as the last one has advanced.
std::vector<std::uint32_t> CnnEvaluator::used_slots() const {
    std::vector<std::uint32_t> used;
    for (std::uint32_t slot = 0; slot < running_.size(); ++slot) {
        if (running_[slot].used) {
            used.push_back(slot);
        }
    }
    std::stable_sort(used.begin(), used.end(), [this](std::uint32_t a, std::uint32_t b) {
        return slots_.training(a).plan().parameters < slots_.training(b).plan().parameters;
    });
    return used;
}

std::uint32_t CnnEvaluator::steps_wanted(const Running& running) const {
    const double seconds =
        slots_.runs_ahead() ? seconds_ahead : seconds_between_polls / static_cast<double>(running_.size());
    const double wanted = running.seconds_per_step > 0 ? seconds / running.seconds_per_step : 1;
    const double most = running.batches_to_line > 0 ? static_cast<double>(running.batches_to_line) : most_steps;
    return static_cast<std::uint32_t>(std::clamp(wanted, 1.0, std::min(most, most_steps)));
}

void CnnEvaluator::measure(std::uint32_t slot) {
    Running& running = running_[slot];
    const train::Training& training = slots_.training(slot);
    const std::int64_t steps = training.steps_done() - running.steps_done;
    const double seconds = training.step_seconds() - running.training_seconds;
    if (steps == 0) {
        return;
    }
    const double now = seconds / static_cast<double>(steps);
    // The first steps are slow because they create plans and graphs: a shorter time per step replaces the estimate
    // immediately.
    running.seconds_per_step = running.seconds_per_step > 0 && now > running.seconds_per_step
                                   ? 0.8 * running.seconds_per_step + 0.2 * now
                                   : now;
    running.steps_done = training.steps_done();
    running.training_seconds = training.step_seconds();
    const double gained = training.progress() - running.progress;
    running.seconds_left = gained > 0 ? seconds * (1 - training.progress()) / gained : running.seconds_left;
    running.progress = training.progress();
    running.individual.epochs = std::max(running.individual.epochs, static_cast<std::int32_t>(training.curve().size()));
}

/// Logs a line if the training has passed a multiple of `log.batches` since the last line.
void CnnEvaluator::log_batches(std::uint32_t slot) {
    if (!config_.log.batches) {
        return;
    }
    Running& running = running_[slot];
    const train::Training& training = slots_.training(slot);
    const train::EpochSoFar epoch = training.epoch_so_far();
    const std::int64_t every = *config_.log.batches;
    running.batches_to_line = every - batches_of(epoch) % every;
    if (batches_of(epoch) / every == batches_of(running.logged) / every) {
        return;
    }
    const double seconds = running.training_seconds - running.seconds_logged;
    const auto samples = static_cast<double>(epoch.samples - running.logged.samples);
    spdlog::info("{}: epoch {}, batch {}/{}, training loss {:.5g}, {:.0f} samples/s", to_text(running.individual.id),
                 epoch.epoch, epoch.batch, epoch.batches, epoch.training_loss, seconds > 0 ? samples / seconds : 0);
    running.logged = epoch;
    running.seconds_logged = running.training_seconds;
}

void CnnEvaluator::describe(search::Individual& individual, train::Training& training, search::Outcome outcome) const {
    individual.outcome = outcome;
    individual.finished = unix_seconds();
    individual.curve = training.curve();
    individual.metrics = training.watched();
    individual.epochs = static_cast<std::int32_t>(individual.curve.size());
    individual.best_epoch = static_cast<std::int32_t>(training.best_epoch());
    individual.batch_size = training.global_batch();
    individual.parameters = training.plan().parameters;
    individual.training_seconds = training.training_seconds();
    individual.samples_per_second = individual.training_seconds > 0
                                        ? static_cast<double>(training.samples_trained()) / individual.training_seconds
                                        : 0;
    if (individual.best_epoch > 0) {
        const Epoch& best = individual.curve.at(static_cast<std::size_t>(individual.best_epoch - 1));
        individual.accuracy = best.validation_accuracy;
        individual.loss =
            train::objective_value(std::get<train::Objective>(config_.objective),
                                   training.curve().at(static_cast<std::size_t>(individual.best_epoch - 1)));
    }
}

search::Individual CnnEvaluator::ended(std::uint32_t slot, Status status) {
    Running& running = running_[slot];
    train::Training& training = slots_.training(slot);
    describe(running.individual, training, outcome_of(status));
    running.individual.joules = running.joules_before + slots_.joules();
    tell_loss_scale(running.individual, training);
    judge(running.individual);
    if (status == Status::finished) {
        keep_best(running.individual, training);
        keep_for_children(running.individual, training);
    } else if (status >= Status::out_of_memory) {
        running.individual.problem = slots_.problem();
    }
    search::Individual individual = std::move(running.individual);
    release(slot);
    return individual;
}

void CnnEvaluator::release(std::uint32_t slot) {
    command({.kind = Order::Kind::release, .slot = slot});
    running_[slot] = Running{};
    has_room_ = true;
}

}  // namespace finch::evaluate
