// A worker's life: what it breeds, trains and publishes, until nothing is left to do.
#include "finch/island/worker.hpp"

#include "finch/base/files.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>
#include <utility>

namespace finch::island {
namespace {

constexpr int breeding_attempts = 100;
constexpr std::uint32_t most_violations = 10000;  ///< of constraints, which are quickly seen, in one breeding

/// The unfinished individuals that this worker goes on with, and how many each worker does.
struct Dealt {
    std::deque<search::Individual> mine;
    std::vector<std::int64_t> counts;  ///< by worker
};

/// Those of an island are dealt out to its workers in the order of ids, the same way by every leader. One that has
/// taken its process down comes after the others.
Dealt deal(const search::Population& population, const WorkerOptions& options) {
    Dealt dealt;
    dealt.counts.resize(static_cast<std::size_t>(options.islands->workers()));
    std::map<int, std::size_t> turn;
    for (const search::Individual* individual : population.unfinished()) {
        const int island = population.island_now(individual->island);
        const std::vector<std::int32_t>& workers = options.islands->leaders_of(island).workers;
        const bool to_worker_0 = options.one_at_a_time || workers.empty();
        const std::int32_t worker = to_worker_0 ? 0 : workers[turn[island]++ % workers.size()];
        ++dealt.counts[static_cast<std::size_t>(worker)];
        if (worker == options.self) {
            dealt.mine.push_back(*individual);
        }
    }
    std::stable_partition(dealt.mine.begin(), dealt.mine.end(),
                          [](const search::Individual& one) { return one.attempt.deaths == 0; });
    return dealt;
}

/// In [0, 1), far apart for workers that are near each other (the golden ratio's multiples): when in a period each
/// writes its snapshots, so that not all write at once.
double phase_of(std::int32_t worker) {
    const double turns = 0.6180339887498949 * worker;
    return turns - std::floor(turns);
}

}  // namespace

Worker::Worker(WorkerOptions options, search::Population population, search::Propagator& propagator,
               Evaluator& evaluator, Journal& journal, comm::Mailbox& mailbox, Archive* archive, Observer& observer,
               Hooks hooks)
    : options_(std::move(options)),
      population_(std::move(population)),
      propagator_(propagator),
      evaluator_(evaluator),
      journal_(journal),
      mailbox_(mailbox),
      observer_(observer),
      hooks_(std::move(hooks)),
      generation_(options_.bred_before),
      began_(hooks_.steady_seconds()),
      retries_(options_.retries),
      looks_for_duplicates_((options_.duplicates != search::Duplicates::train || options_.retries > 0) &&
                            options_.beginning.space.size() > 0),
      tells_of_starts_(looks_for_duplicates_ && search::can_repeat(options_.beginning.space)),
      liveness_(options_.self, workers(), options_.timeout_seconds, began_) {
    population_.limit_memberships({.island = island(),
                                   .breeding = std::max(propagator_.population(), options_.bred_from),
                                   .exchange = search::exchange_depth(options_.exchange),
                                   .everywhere = archive != nullptr});
    Dealt dealt = deal(population_, options_);
    if (archive != nullptr) {
        archivist_.emplace(
            *archive, LeaseServer(options_.budget, population_, options_.earlier, dealt.counts, options_.final_choice),
            workers(), options_.archive_seconds, hooks_.steady_seconds);
    }
    unfinished_ = std::move(dealt.mine);
    const auto [place, count] = place_on_island();
    retries_.recall(population_, island(), place, count);
    last_checkpoint_ = began_ - phase_of(options_.self) * options_.training_seconds;
    report();
}

ExitReason Worker::run() {
    while (step()) {
        if (!did_something_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    return exit_reason_;
}

bool Worker::step() {
    did_something_ = false;
    receive();
    check_stop();
    if (state_ == State::searching) {
        live();
    }
    answer_requests();
    if (state_ == State::waiting && (!archivist_ || archivist_->leases().all_done())) {
        mailbox_.begin_closing();
        state_ = State::closing;
    }
    if (state_ == State::closing && mailbox_.closed()) {
        receive();
        state_ = State::over;
    }
    if (state_ != State::over) {
        check_liveness();
        housekeeping();
    }
    return state_ != State::over;
}

/// The heart: breeds if a slot is free, trains a little, publishes what ended.
void Worker::live() {
    if (const auto why = used_budget()) {
        halt({true, *why});
    }
    fill_slots();
    if (!evaluator_.idle()) {
        did_something_ = true;
        if (evaluator_.next_may_be_long()) {
            announce(long_seconds);
        }
        try {
            for (search::Individual& done : evaluator_.advance()) {
                settle(std::move(done));
            }
            tell_progress();
        } catch (const StorageError& error) {
            stop_for_storage(error.what());
        }
    }
    if (state_ == State::searching && lease_client_.exhausted() && !lease_client_.waiting() && unfinished_.empty() &&
        evaluator_.idle()) {
        leave();
    }
}

void Worker::fill_slots() {
    while (state_ == State::searching && !unfinished_.empty() && !alone_ && evaluator_.has_free_slot()) {
        // One that took its process down trains with nothing beside it, so that no other is taken for the cause.
        const bool is_to_be_alone = unfinished_.front().attempt.deaths > 0 || options_.one_at_a_time;
        if (is_to_be_alone && !evaluator_.idle()) {
            break;
        }
        did_something_ = true;
        search::Individual individual = std::move(unfinished_.front());
        unfinished_.pop_front();
        if (is_to_be_alone) {
            alone_ = individual.id;
        }
        start(std::move(individual));
    }
    while (state_ == State::searching && !alone_ && evaluator_.has_free_slot() && lease_client_.take()) {
        did_something_ = true;
        start_next();
    }
    while (state_ == State::searching && !alone_ && evaluator_.has_free_slot()) {
        auto repeat = lease_client_.take_repeat();
        if (!repeat) {
            break;
        }
        did_something_ = true;
        start_repeat(std::move(*repeat));
    }
    if (state_ == State::searching && !alone_ && unfinished_.empty() &&
        lease_client_.should_ask(evaluator_.wants_soon())) {
        send_lease(search::LeaseMessage::Kind::request, 0);
    }
}

/// Which of how many leaders of its island this worker is.
std::pair<std::size_t, std::size_t> Worker::place_on_island() const {
    const std::vector<std::int32_t>& leaders = options_.islands->leaders_of(island()).workers;
    const auto self = std::lower_bound(leaders.begin(), leaders.end(), options_.self);
    return {static_cast<std::size_t>(self - leaders.begin()), leaders.size()};
}

/// What this worker knows of its island stands for all islands.
search::Stage Worker::stage() const {
    const auto [place, leaders] = place_on_island();
    const auto count = static_cast<std::int64_t>(leaders);
    const Budget& budget = options_.budget;
    search::Stage stage;
    stage.workers = static_cast<std::int32_t>(count);
    stage.births = static_cast<std::uint64_t>((generation_ - 1) * count) + place;
    stage.evaluations = budget.evaluations.value_or(budget.generations.value_or(0) * workers());
    if (options_.final_choice) {
        stage.evaluations = std::max<std::int64_t>(1, stage.evaluations - options_.final_choice->evaluations());
    }
    if (stage.evaluations > 0) {
        const auto settled = gossips(island()) ? static_cast<double>(stage.births)
                                               : static_cast<double>(population_.settled_on(island()));
        stage.budget_used = settled * workers() / static_cast<double>(count * stage.evaluations);
    }
    const double hours = (hooks_.steady_seconds() - began_) / 3600;
    if (budget.hours) {
        stage.budget_used = std::max(stage.budget_used, (options_.hours_before + hours) / *budget.hours);
    }
    if (budget.node_hours) {
        stage.budget_used =
            std::max(stage.budget_used, (options_.node_hours_before + options_.nodes * hours) / *budget.node_hours);
    }
    if (budget.epochs) {
        auto epochs = static_cast<double>(population_.epochs_on(island()));
        if (const std::size_t known = population_.settled_on(island()); gossips(island()) && known > 0) {
            epochs *= static_cast<double>(stage.births) / static_cast<double>(known);
        }
        stage.budget_used = std::max(
            stage.budget_used, epochs * workers() / static_cast<double>(count) / static_cast<double>(*budget.epochs));
    }
    stage.budget_used = std::min(stage.budget_used, 1.0);
    return stage;
}

/// One more individual of this worker, not bred yet.
search::Individual Worker::newborn() {
    search::Individual individual;
    individual.id = search::Id::make(options_.restart, static_cast<std::uint32_t>(options_.self), ++sequence_);
    individual.island = island();
    individual.generation = generation_;
    individual.born = hooks_.unix_seconds();
    individual.node = options_.node;
    individual.device = options_.device;
    individual.ranks = options_.ranks;
    individual.threads = options_.threads;
    individual.attempt = {options_.restart, options_.self};
    return individual;
}

/// The same genes under an id, and so with a seed, of its own.
void Worker::start_repeat(search::Repeat repeat) {
    search::Individual individual = newborn();
    individual.bred_by = search::Operator::repeat;
    individual.parents = {repeat.of, search::Id{}};
    individual.genome = std::move(repeat.genome);
    start(std::move(individual));
}

/// What failed comes again once nothing is left that the run begins with.
void Worker::start_next() {
    ++generation_;
    const bool is_opening =
        opening_of(options_.openings_left, sequence_, static_cast<std::uint32_t>(options_.self), workers()).has_value();
    const auto failed = is_opening ? std::nullopt : retries_.take();
    if (const search::Individual* const known = failed ? population_.find(*failed) : nullptr) {
        start(as_retry_of(newborn(), *known));
    } else {
        start_bred();
    }
}

/// What a bred genome need not be trained for; null: nothing. Where genomes are trained again, one that failed as often
/// as it may is not.
const search::Individual* Worker::twin_of(const search::Genome& genome) const {
    const search::Individual* const twin = looks_for_duplicates_ ? known_genomes_.find(genome) : nullptr;
    const bool counts = twin != nullptr &&
                        (options_.duplicates != search::Duplicates::train || twin->outcome == search::Outcome::failed);
    return counts ? twin : nullptr;
}

void Worker::start_bred() {
    search::Individual individual = newborn();
    const search::Stage now = stage();
    if (looks_for_duplicates_) {
        known_genomes_.update(population_, island(), tells_of_starts_);
    }
    bool exists = false;
    std::uint32_t attempt = 0;
    std::uint32_t known = 0;
    std::uint32_t violations = 0;
    while (!exists && attempt - known - violations < breeding_attempts && violations < most_violations) {
        search::Offspring offspring = breed(attempt++, individual.id, now);
        individual.genome = std::move(offspring.genome);
        individual.parents = offspring.parents;
        individual.bred_by = offspring.bred_by;
        individual.breeding = offspring.breeding;
        if (!options_.beginning.allows(individual.genome)) {
            ++violations;
            continue;
        }
        exists = evaluator_.can_exist(individual.genome);
        const search::Individual* const twin = exists ? twin_of(individual.genome) : nullptr;
        if (twin != nullptr && ++known_in_a_row_ < search::most_known_in_a_row) {
            if (options_.duplicates == search::Duplicates::reuse && twin->finished_training()) {
                reuse(std::move(individual), *twin);
                return;
            }
            ++known;
            exists = false;
        }
    }
    known_in_a_row_ = 0;
    if (!exists) {
        const std::uint32_t breedings = attempt - known;
        individual.outcome = search::Outcome::failed;
        individual.problem =
            violations == 0 ? fmt::format("no network that can exist in {} breedings", breedings)
                            : fmt::format("no network that can exist in {} breedings, of which {} violate constraints",
                                          breedings, violations);
        individual.finished = hooks_.unix_seconds();
        settle(std::move(individual));
    } else {
        start(std::move(individual));
    }
}

/// Gives `individual` the result of `twin`, and the lease back.
void Worker::reuse(search::Individual individual, const search::Individual& twin) {
    lease_client_.give_back();
    --generation_;  // births are those that took a lease
    settle(search::with_result_of(std::move(individual), twin, hooks_.unix_seconds()));
}

/// From what the run begins with, else by the propagator; canonical.
search::Offspring Worker::breed(std::uint32_t attempt, search::Id id, const search::Stage& now) {
    RandomStream random(options_.seed, Purpose::breeding, id.value, attempt);
    const search::Beginning& beginning = options_.beginning;
    if (known_in_a_row_ >= search::most_known_in_a_row / 2) {
        return {search::random_genome(beginning.space, random)};  // chance finds what is not known yet
    }
    if (const auto opening = opening_of(options_.openings_left, id.sequence() - 1, id.worker(), workers())) {
        return beginning.open(*opening, attempt, random);
    }
    search::Offspring offspring = propagator_.breed(population_, island(), now, random);
    if (beginning.space.size() > 0) {
        offspring.genome = search::canonical(beginning.space, std::move(offspring.genome));
    }
    return offspring;
}

/// Recorded before it begins: should the process die of it, the next start knows who was in training.
void Worker::start(search::Individual individual) {
    individual.attempt.restart = options_.restart;
    individual.attempt.worker = options_.self;
    individual.ranks = options_.ranks;
    const bool is_told =
        (propagator_.looks_at_training() || tells_of_starts_) && leaders_of(island()).size() <= most_told;
    if (publish(search::Started{individual}, is_told ? leaders_of(island()) : std::vector<std::int32_t>())) {
        evaluator_.start(std::move(individual));
    }
}

/// Write first, then tell; then maybe exchange.
void Worker::settle(search::Individual individual) {
    const double seconds = individual.finished - individual.started;
    if (individual.started > 0 && seconds >= 0) {
        seconds_per_evaluation_ = std::max(seconds, 1e-9);
    }
    if (alone_ == individual.id) {
        alone_.reset();
    }
    // Of an earlier start it may be another island's: whose leaders breed with it.
    if (!publish(search::Result{individual}, told_of(individual))) {
        return;
    }
    if (individual.is_reused()) {
        return;
    }
    ++evaluations_;
    retries_.settled(individual, population_);
    evaluator_.settled(individual);
    if (state_ == State::searching && !individual.is_repeat()) {
        exchange(individual);
    }
}

/// Of a rung the island's leaders hear, who compare theirs with it; of epochs world rank 0 alone, who counts them.
void Worker::tell_progress() {
    for (search::Individual& individual : evaluator_.take_progress()) {
        const search::Individual* known = population_.find(individual.id);
        const bool is_at_rung = known == nullptr || known->pruning.rung < individual.pruning.rung;
        const int island = population_.island_now(individual.island);
        const bool is_told = is_at_rung && leaders_of(island).size() <= most_told;
        publish(search::Started{std::move(individual)}, is_told ? leaders_of(island) : std::vector<std::int32_t>());
    }
}

void Worker::exchange(const search::Individual& after) {
    RandomStream random(options_.seed, Purpose::exchange, after.id.value);
    const search::IslandLeaders& leaders = options_.islands->leaders_of(island());
    for (const search::Record& record :
         search::plan_exchange(options_.exchange, population_, leaders, options_.self, random)) {
        const auto* move = std::get_if<search::Move>(&record);
        const int target = move != nullptr ? move->home.island : std::get<search::Copy>(record).island;
        std::vector<std::int32_t> to = leaders_of(target);
        to.insert(to.end(), leaders.workers.begin(), leaders.workers.end());
        publish(record, to);
    }
}

/// Nothing runs here that goes on, and nothing more is started: says so, and waits for the others.
void Worker::leave() {
    report();
    send_lease(search::LeaseMessage::Kind::done, lease_client_.return_leases());
    state_ = State::waiting;
}

}  // namespace finch::island
