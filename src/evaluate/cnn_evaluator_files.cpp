// The files of a worker's trainings: snapshots, the best weights, and weights for children.
#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/data/recorded_pixels.hpp"
#include "finch/evaluate/cnn_evaluator.hpp"
#include "finch/store/model_file.hpp"

#include <chrono>
#include <cstdio>
#include <thread>

namespace finch::evaluate {
namespace {

/// Simulates a slow file system in tests. If FINCH_TEST_SNAPSHOT_DELAY is "WORKER:SECONDS" and names this worker,
/// sleeps for that time.
void delay_snapshot(int worker) {
    const auto text = cluster::Environment::of_this_process().text("FINCH_TEST_SNAPSHOT_DELAY");
    int whose = -1;
    double seconds = 0;
    if (text && std::sscanf(text->c_str(), "%d:%lf", &whose, &seconds) == 2 && whose == worker) {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    }
}

}  // namespace

std::optional<store::ModelFile> CnnEvaluator::saved_training(const search::Individual& individual) {
    const store::Snapshot& snapshot =
        snapshots_.try_emplace(individual.id, run_.directory.training(individual.id), individual.is_of_earlier_start())
            .first->second;
    std::vector<std::string> problems;
    auto file = snapshot.read(problems);
    for (const std::string& problem : problems) {
        spdlog::warn("{}", problem);
    }
    if (!file) {
        return std::nullopt;
    }
    if (const std::string why = store::why_foreign(*file, run_.number, individual); !why.empty()) {
        spdlog::warn("{}: {}; the training begins anew", run_.directory.training(individual.id).string(), why);
        return std::nullopt;
    }
    return file;
}

/// Writes the weights before the individual's record, so that a reader of the record finds them. If the write fails,
/// throws StorageError, and the record is not written either.
void CnnEvaluator::keep_best(const search::Individual& individual, const train::Training& training,
                             const search::Population& population) {
    const search::Standing mine = search::standing(individual);
    const search::Individual* const best = population.best_trained();
    const bool is_best =
        (best == nullptr || search::better(mine, search::standing(*best))) && (!kept_ || search::better(mine, *kept_));
    if (!mine.ranks_by_loss || (!individual.is_repeat() && !is_best)) {
        return;
    }
    const backend::LapScope scope(profile(), backend::Activity::snapshot);
    keep_alive(seconds_of_files);
    store::ModelFile file{individual, search::genome_text(config_.space, individual.genome), training.best_weights(),
                          run_.number};
    data::record_pixels(file.arrays, datasets_.training, config_.recipe(individual.genome, individual.id.value).data);
    file.classes = datasets_.training.class_names;
    try {
        if (individual.is_repeat()) {
            store::write_model(run_.directory.repeat(individual.id), file);  // any repeat may be published
        } else {
            const bool is_first =
                !kept_ && individual.attempt.restart == 0;  // in this start, and this is the run's first
            store::write_model(run_.directory.worker_best(run_.worker), file,
                               {.predecessor = is_first ? Predecessor::drop : Predecessor::keep});
            kept_ = mine;
        }
    } catch (const ApiError& error) {
        throw StorageError(fmt::format("the weights of {} cannot be kept: {}", to_text(individual.id), error.what()));
    }
}

void CnnEvaluator::keep_for_children(const search::Individual& individual, const train::Training& training) {
    if (individual.is_repeat() || !config_.recipe(individual.genome, individual.id.value).training.inherit) {
        return;
    }
    keep_alive(seconds_of_files);
    try {
        parent_weights_.keep(
            {individual, search::genome_text(config_.space, individual.genome), training.best_weights(), run_.number});
    } catch (const ApiError& error) {
        spdlog::warn("the weights of {} cannot be kept for its children: {}", to_text(individual.id), error.what());
    }
}

/// Returns the weights of the parent if they are kept and every tensor has the same shape; else none.
NamedArrays CnnEvaluator::inherited_weights(const search::Individual& individual,
                                            const search::Population& population) const {
    const search::Id parent = trained_parent(individual, population);
    try {
        const train::Recipe recipe = config_.recipe(individual.genome, individual.id.value);
        auto weights = recipe.training.inherit && parent != search::Id{} ? parent_weights_.find(parent) : std::nullopt;
        if (weights) {
            const nn::ModelPlan plan = nn::plan_model(recipe.model, sample_, classes_, 1);
            static_cast<void>(nn::read_tensors(plan, *weights));
            const bool are_all = weights->size() == plan.tensors.size() + plan.counters.size();
            return are_all ? std::move(*weights) : NamedArrays{};
        }
    } catch (const Error&) {
        // A tensor has another shape than the parent's, or the network cannot exist. If the network cannot exist,
        // start() reports the reason.
    }
    return {};
}

bool CnnEvaluator::can_continue(const search::Individual& heir, const search::Population& population) const {
    const search::Individual* const parent = population.find(heir.inherited_from);
    if (parent == nullptr || !rung_snapshots_.has_parent_of(heir)) {
        return false;
    }
    try {
        return train::can_continue(config_.recipe(heir.genome, heir.id.value),
                                   config_.recipe(parent->genome, parent->id.value), heir.inherited_epochs, sample_,
                                   classes_);
    } catch (const ConfigError&) {
        return false;
    }
}

std::optional<store::ModelFile> CnnEvaluator::parents_training(const search::Individual& heir) const {
    auto file = rung_snapshots_.parent_of(heir);
    if (!file) {
        spdlog::warn("{}: the snapshot of its parent {} after epoch {} is missing; the training begins anew",
                     to_text(heir.id), to_text(heir.inherited_from), heir.inherited_epochs);
    }
    return file;
}

/// Keeps the snapshot of a training that has just reached a rung and continues, before its record tells of the rung.
void CnnEvaluator::keep_at_rung(std::uint32_t slot, const search::Population& population) {
    const search::Individual& individual = slots_[slot].individual;
    if (individual.is_repeat() || individual.pruning->rung <= slots_[slot].rung ||
        !is_wanted_at_rung(individual, population, config_.inherit->parents)) {
        return;
    }
    try {
        rung_snapshots_.keep(take_snapshot(slot), population, config_.inherit->parents);
    } catch (const ApiError& error) {
        spdlog::warn("the snapshot of {} after epoch {} cannot be kept for heirs: {}", to_text(individual.id),
                     individual.epochs, error.what());
    }
}

void CnnEvaluator::finished(const search::Individual& individual, const search::Population& /*population*/) {
    if (const auto snapshot = snapshots_.find(individual.id); snapshot != snapshots_.end()) {
        snapshot->second.remove();
        snapshots_.erase(snapshot);
    }
}

/// Collective over the worker.
store::ModelFile CnnEvaluator::take_snapshot(std::uint32_t slot) {
    command({.kind = Order::Kind::snapshot, .slot = slot, .seconds_to_next = seconds_of_files});
    delay_snapshot(run_.worker);
    search::Individual& individual = slots_[slot].individual;
    individual.training_seconds = training(slot).training_seconds();
    individual.joules = joules_of(slots_[slot]);
    return {individual, search::genome_text(config_.space, individual.genome), std::exchange(snapshot_, {}),
            run_.number};
}

/// Collective over the worker. Writes the training's snapshot. Returns false if it could not be written.
bool CnnEvaluator::save(std::uint32_t slot) {
    const search::Id id = slots_[slot].individual.id;
    try {
        store::ModelFile file = take_snapshot(slot);
        file.individual.progress = slots_[slot].individual.progress = training(slot).progress();
        snapshots_.at(id).write(file);
        return true;
    } catch (const ApiError& error) {
        spdlog::warn("the snapshot of {} could not be written, the one before stands: {}", to_text(id), error.what());
        return false;
    }
}

std::vector<search::Individual> CnnEvaluator::checkpoint() {
    const backend::LapScope scope(profile(), backend::Activity::snapshot);
    const double begin = steady_seconds();
    std::vector<search::Individual> saved;
    for (const std::uint32_t slot : GroupEvaluator::used_slots()) {
        if (save(slot)) {
            saved.push_back(slots_[slot].individual);
        }
    }
    checkpoint_seconds_ = steady_seconds() - begin;
    return saved;
}

}  // namespace finch::evaluate
