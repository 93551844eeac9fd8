#include "finch/evaluate/cnn_evaluator.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/out_of_memory.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <variant>

namespace finch::evaluate {
namespace {

/// The interval at which messages, signals and the clock are checked. An asynchronous device gets more steps per Order
/// (seconds_ahead), so it stays busy while the leader serves the other slots.
constexpr double seconds_between_polls = 0.005;
constexpr double seconds_ahead = 0.02;
constexpr double most_steps = 1000;  ///< per Order

Status status_of(train::State state) {
    switch (state) {
        case train::State::running:
            return Status::running;
        case train::State::finished:
            return Status::finished;
        case train::State::diverged:
            return Status::diverged;
        case train::State::pruned:
            return Status::pruned;
    }
    return Status::failed;
}

std::int64_t bytes_of(const NamedArrays& arrays) {
    std::size_t bytes = 0;
    for (const NamedArray& array : arrays) {
        std::visit([&](const auto& values) { bytes += std::span(values).size_bytes(); }, array.values);
    }
    return static_cast<std::int64_t>(bytes);
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

CnnEvaluator::CnnEvaluator(const config::Config& config, const comm::Group& group, const data::Datasets& datasets,
                           backend::Device& device, cluster::AllReduceKind communicator, WorkerRun run,
                           energy::Meter* meter, std::optional<train::Profile> profile)
    : GroupEvaluator(config, group, meter, std::move(profile)),
      datasets_(datasets),
      run_(std::move(run)),
      sample_{datasets.training.height, datasets.training.width, datasets.training.channels},
      classes_(datasets.training.outputs()),
      exceptions_(std::uncaught_exceptions()),
      networks_(slots_.size()),
      parent_weights_(run_.directory, run_.number),
      rung_snapshots_(run_.directory, run_.number) {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        streams_.push_back(device.new_stream());
    }
    // Several slots share a communicator of several ranks only on CPUs. On CPUs, the sequence of Orders fixes the order
    // of the sums.
    all_reduce_ = comm::make_all_reduce(communicator, group, *streams_.front(), config.workers.timeout_seconds);
    comm::check_sum(*all_reduce_, group, *streams_.front());
}

CnnEvaluator::~CnnEvaluator() {
    if (std::uncaught_exceptions() > exceptions_) {
        all_reduce_->give_up();
    }
}

bool CnnEvaluator::can_exist(const search::Genome& genome) const {
    return config::can_exist(config_, genome, sample_, classes_);
}

/// Returns the status of `work` on this rank. If `work` throws, returns the kind of failure and the error text.
template <class Work>
std::pair<Status, std::string> CnnEvaluator::attempt(Work&& work) const {
    try {
        return {work(), ""};
    } catch (const std::bad_alloc& error) {
        const bool is_known = dynamic_cast<const OutOfMemory*>(&error) != nullptr;
        return {Status::out_of_memory, fmt::format("out of memory on rank {} of the worker{}", group_.rank(),
                                                   is_known ? std::string(": ") + error.what() : "")};
    } catch (const StorageError& error) {
        return {Status::storage, error.what()};
    } catch (const std::exception& error) {
        return {Status::failed, error.what()};
    }
}

/// Allocates all memory before the ranks agree: if a follower has no memory, all ranks release the slot together.
Answer CnnEvaluator::on_start(const Order& order) {
    Network& network = networks_.at(order.slot) = {};
    const auto [mine, text] = attempt([&] {
        network.training = std::make_unique<train::Training>(
            *streams_.at(order.slot), group_, *all_reduce_, datasets_,
            config_.recipe(order.individual.genome, order.individual.id.value),
            train::HostMemory{largest_snapshot(), bytes_of(order.snapshot) + bytes_of(order.weights)}, profile());
        if (config_.inherit) {
            network.training->pause_after_epochs();
        }
        if (order.continues_parent) {
            network.training->continue_from(order.snapshot);
        } else if (!order.snapshot.empty()) {
            network.training->restore(order.snapshot);
        } else if (!order.weights.empty()) {
            network.training->begin_with(order.weights);
        }
        return Status::running;
    });
    if (mine >= Status::out_of_memory) {
        check_health(order.slot);
    }
    const Status all = agree(mine, text);
    if (all != Status::running) {
        network.training.reset();
    }
    return {all == Status::running, all};
}

/// All ranks agree on the status in this function, because a failure or a loss that is not finite may occur on one rank
/// only. The training has already run the collectives of all its steps, so no rank waits for a failed rank.
Answer CnnEvaluator::on_advance(const Order& order) {
    const auto [mine, text] = attempt([&] {
        train::Training& training = *networks_.at(order.slot).training;
        training.advance(order.batches);
        return status_of(training.state());
    });
    const Status all = agree(mine, text);
    if (all >= Status::out_of_memory) {
        // check_health() runs on every rank: the device of a peer may wait for sums that the failed rank never started.
        check_health(order.slot);
    }
    return {all == Status::running, all};
}

void CnnEvaluator::on_snapshot(const Order& order) {
    const backend::LapScope scope(profile(), backend::Activity::snapshot);
    snapshot_ = networks_.at(order.slot).training->snapshot();
    if (!group_.is_leader()) {
        snapshot_.clear();  // only the leader writes it
    }
}

/// Throws if the device or the communicator failed. Without this check, all following individuals would fail too and
/// use up the whole budget.
void CnnEvaluator::check_health(std::uint32_t slot) {
    all_reduce_->synchronize();
    streams_.at(slot)->synchronize();
}

std::int64_t CnnEvaluator::largest_snapshot() const {
    std::int64_t largest = 0;
    for (const Network& network : networks_) {
        largest = std::max(largest, network.training ? network.training->plan().snapshot_bytes : 0);
    }
    return largest;
}

/// Enqueues the delayed steps of all slots (backend::CapturedStep::waits()), and then the validation steps that had to
/// follow them.
void CnnEvaluator::launch_waiting_steps() {
    streams_.front()->launch_waiting_steps();
    for (const Network& network : networks_) {
        if (network.training) {
            network.training->enqueue_validation();
        }
    }
    streams_.front()->launch_waiting_steps();
}

/// The training resumes from its own snapshot, continues that of its parent, or begins anew.
void CnnEvaluator::prepare(search::Individual& individual, Order& order, const search::Population& population) {
    keep_alive(seconds_of_files);
    if (auto saved = saved_training(individual)) {
        const bool has_time = saved->individual.started > 0;  // in an earlier start of the run
        individual.started = has_time ? saved->individual.started : individual.started;
        individual.inherited_from = saved->individual.inherited_from;
        individual.inherited_epochs = saved->individual.inherited_epochs;
        individual.training_seconds = saved->individual.training_seconds;
        individual.joules = saved->individual.joules;
        order.snapshot = std::move(saved->arrays);
        return;
    }
    individual.training_seconds = 0;
    if (auto parents = individual.is_heir() ? parents_training(individual) : std::nullopt) {
        order.continues_parent = true;
        order.snapshot = std::move(parents->arrays);
        return;
    }
    search::begin_anew(individual);
    order.weights = inherited_weights(individual, population);
    individual.inherited_from = order.weights.empty() ? search::Id{} : trained_parent(individual, population);
}

void CnnEvaluator::begun(const Order& order) {
    Network& network = networks_[order.slot];
    network.progress = network.training->progress();
    network.logged = network.training->epoch_so_far();
    const search::Individual& individual = slots_[order.slot].individual;
    if (order.continues_parent) {
        spdlog::info("{} continues {} from epoch {} on", to_text(individual.id), to_text(individual.inherited_from),
                     individual.inherited_epochs + 1);
        save(order.slot);  // from now on, it needs the snapshot of its parent no more
    } else if (!order.snapshot.empty()) {
        spdlog::info("{} resumes from its snapshot, {:.0f} % done", to_text(individual.id), 100 * network.progress);
    }
}

std::vector<search::Individual> CnnEvaluator::advance(const search::Population& population) {
    std::vector<search::Individual> done = GroupEvaluator::advance(population);
    launch_waiting_steps();
    return done;
}

std::optional<search::Individual> CnnEvaluator::poll(std::uint32_t slot, const search::Population& population) {
    set_pruner(slot, population);
    const Status status = command({.kind = Order::Kind::advance,
                                   .slot = slot,
                                   .batches = steps_wanted(networks_[slot]),
                                   .worked = networks_[slot].seconds})
                              .status;
    measure(slot);
    log_batches(slot);
    if (status == Status::running && config_.inherit) {
        keep_at_rung(slot, population);
    }
    if (status == Status::storage) {
        const std::string why = problem();
        static_cast<void>(release(slot));  // a later start resumes it from its last snapshot
        throw StorageError(why);
    }
    if (status == Status::running) {
        return std::nullopt;
    }
    launch_waiting_steps();  // so that the other slots compute while end() writes files
    return end(slot, status, population);
}

/// Returns the slots that train, sorted by their numbers of parameters. So networks of one shape advance one after
/// another, and their gang is launched as soon as the last one has advanced.
std::vector<std::uint32_t> CnnEvaluator::used_slots() const {
    std::vector<std::uint32_t> used = GroupEvaluator::used_slots();
    std::stable_sort(used.begin(), used.end(), [this](std::uint32_t a, std::uint32_t b) {
        return training(a).plan().parameters < training(b).plan().parameters;
    });
    return used;
}

double CnnEvaluator::seconds_left(std::uint32_t slot) const {
    const double seconds = networks_[slot].seconds_left;
    return seconds > 0 ? seconds : std::numeric_limits<double>::infinity();
}

bool CnnEvaluator::next_may_be_long() const {
    constexpr double long_step = 1;  // s
    const auto used = used_slots();
    return std::any_of(used.begin(), used.end(), [this](std::uint32_t slot) {
        const double seconds = networks_[slot].seconds_per_step;
        return seconds <= 0 || seconds > long_step;
    });
}

/// Lets the training compare itself with `population` in its next steps.
void CnnEvaluator::set_pruner(std::uint32_t slot, const search::Population& population) {
    if (!search::prunes(config_.pruning)) {
        return;
    }
    networks_[slot].training->set_pruner([this, slot, &population](std::span<const Epoch> curve, std::int64_t epochs) {
        std::vector<double> values;
        for (const Epoch& epoch : curve) {
            values.push_back(train::objective_value(std::get<train::Objective>(config_.objective), epoch));
        }
        if (!config_.costs.empty()) {
            describe_costs(slot, curve);
        }
        return search::ends_early(config_.pruning, values, epochs, population, slots_[slot].individual);
    });
}

/// Sets what the costs of a running training need. `curve`: its epochs so far.
void CnnEvaluator::describe_costs(std::uint32_t slot, std::span<const Epoch> curve) {
    search::Individual& individual = slots_[slot].individual;
    individual.parameters = training(slot).plan().parameters;
    individual.training_seconds = training(slot).training_seconds();
    individual.accuracy = curve.back().validation_accuracy;
    for (const search::Cost& cost : config_.costs) {
        if (cost.quantity == search::Quantity::f1) {
            individual.objective_metrics.at(cost.place) = curve.back().validation_f1;
        }
    }
    individual.joules = joules_so_far(slot);
}

std::uint32_t CnnEvaluator::steps_wanted(const Network& network) const {
    const bool runs_ahead =
        streams_.front()->runs_ahead();  // on_advance() returns before the device has done the steps
    const double seconds = runs_ahead ? seconds_ahead : seconds_between_polls / static_cast<double>(slots_.size());
    const double wanted = network.seconds_per_step > 0 ? seconds / network.seconds_per_step : 1;
    const double most = network.batches_to_line > 0 ? static_cast<double>(network.batches_to_line) : most_steps;
    return static_cast<std::uint32_t>(std::clamp(wanted, 1.0, std::min(most, most_steps)));
}

void CnnEvaluator::measure(std::uint32_t slot) {
    Network& network = networks_[slot];
    const train::Training& training = *network.training;
    const std::int64_t steps = training.steps_done() - network.steps_done;
    const double seconds = training.step_seconds() - network.seconds;
    if (steps == 0) {
        return;
    }
    const double now = seconds / static_cast<double>(steps);
    // The first steps are slow because they create plans and graphs: a shorter time per step replaces the estimate
    // immediately.
    network.seconds_per_step = network.seconds_per_step > 0 && now > network.seconds_per_step
                                   ? 0.8 * network.seconds_per_step + 0.2 * now
                                   : now;
    network.steps_done = training.steps_done();
    network.seconds = training.step_seconds();
    const double gained = training.progress() - network.progress;
    network.seconds_left = gained > 0 ? seconds * (1 - training.progress()) / gained : network.seconds_left;
    network.progress = training.progress();
    std::int32_t& epochs = slots_[slot].individual.epochs;
    epochs = std::max(epochs, static_cast<std::int32_t>(training.curve().size()));
}

/// Logs a line if the training has passed a multiple of `log.batches` since the last line.
void CnnEvaluator::log_batches(std::uint32_t slot) {
    if (!config_.log.batches) {
        return;
    }
    Network& network = networks_[slot];
    const train::EpochSoFar epoch = network.training->epoch_so_far();
    const std::int64_t every = *config_.log.batches;
    network.batches_to_line = every - batches_of(epoch) % every;
    if (batches_of(epoch) / every == batches_of(network.logged) / every) {
        return;
    }
    const double seconds = network.seconds - network.seconds_logged;
    const auto samples = static_cast<double>(epoch.samples - network.logged.samples);
    spdlog::info("{}: epoch {}, batch {}/{}, training loss {:.5g}, {:.0f} samples/s",
                 to_text(slots_[slot].individual.id), epoch.epoch, epoch.batch, epoch.batches, epoch.training_loss,
                 seconds > 0 ? samples / seconds : 0);
    network.logged = epoch;
    network.seconds_logged = network.seconds;
}

void CnnEvaluator::describe(search::Individual& individual, const train::Training& training, Status status) const {
    individual.outcome = outcome_of(status);
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
        individual.loss = train::objective_value(std::get<train::Objective>(config_.objective), best);
    }
}

search::Individual CnnEvaluator::end(std::uint32_t slot, Status status, const search::Population& population) {
    search::Individual& individual = slots_[slot].individual;
    describe(individual, training(slot), status);
    tell_loss_scale(individual, training(slot));
    complete(slots_[slot]);
    if (status == Status::finished) {
        keep_best(individual, training(slot), population);
        keep_for_children(individual, training(slot));
    } else if (status >= Status::out_of_memory) {
        individual.problem = problem();
    }
    return release(slot);
}

search::Individual CnnEvaluator::release(std::uint32_t slot) {
    search::Individual individual = take(slot);
    command({.kind = Order::Kind::release, .slot = slot});
    return individual;
}

}  // namespace finch::evaluate
