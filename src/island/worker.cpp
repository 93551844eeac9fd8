// The main loop of a worker: it trains and publishes individuals until nothing is left to do.
#include "finch/island/worker.hpp"

#include "finch/base/files.hpp"
#include "finch/search/outcomes.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>
#include <utility>

namespace finch::island {
namespace {

/// The unfinished individuals that this worker resumes, and the number that each worker resumes.
struct Dealt {
    std::deque<search::Individual> mine;
    std::vector<std::int64_t> counts;  ///< by worker
};

/// Distributes an island's unfinished individuals among its workers in the order of ids. Every leader computes the same
/// distribution. Individuals that crashed their process in an earlier start come last.
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

/// Returns the point of the snapshot period at which a worker writes its snapshots, in [0, 1). Multiples of the golden
/// ratio are far apart for neighbouring workers, so not all write at the same time.
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
      looks_for_duplicates_((options_.duplicates != search::Duplicates::train || options_.retries > 0 ||
                             options_.other_results != nullptr) &&
                            options_.initial_design.space.size() > 0),
      tells_of_starts_(looks_for_duplicates_ && search::can_repeat(options_.initial_design.space)),
      liveness_(options_.self, workers(), options_.timeout_seconds, began_) {
    Dealt dealt = deal(population_, options_);
    if (archive != nullptr) {
        archivist_.emplace(
            *archive, LeaseServer(options_.budget, population_, options_.earlier, dealt.counts, options_.final_choice),
            Failures(workers(), options_.nodes, options_.retries, population_), options_.archive_seconds,
            hooks_.steady_seconds);
    }
    unfinished_ = std::move(dealt.mine);
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

/// Does some work: breeds if a slot is free, trains for a short time, and publishes individuals that ended.
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
            for (search::Individual& done : evaluator_.advance(population_)) {
                finish(std::move(done));
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
        // An individual that crashed its process in an earlier start trains alone, so that no other individual is
        // blamed.
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
        if (!start_next()) {
            return;  // thousands of results may be reused in a row: check messages in between
        }
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

/// Records the individual before its training begins. If the process then crashes, the next start knows which
/// individuals were in training.
void Worker::start(search::Individual individual) {
    set_place(individual);
    const bool is_told = propagator_.looks_at_training() || tells_of_starts_;
    const std::vector<std::int32_t>& leaders = leaders_of(population_.island_now(individual.island));
    if (publish(search::Started{individual}, is_told ? leaders : std::vector<std::int32_t>())) {
        try {
            evaluator_.start(std::move(individual), population_);
        } catch (const StorageError& error) {
            stop_for_storage(error.what());
        }
    }
}

/// Journals the result, then sends it, then may exchange individuals.
void Worker::finish(search::Individual individual) {
    const double seconds = individual.finished - individual.started;
    if (individual.started > 0 && seconds >= 0 && individual.ranks_by_loss()) {
        seconds_per_evaluation_ = std::max(seconds, 1e-9);
    }
    if (alone_ == individual.id) {
        alone_.reset();
    }
    // An individual of an earlier start may belong to another island, and that island's leaders breed with it.
    search::mark_bad_loss(individual);
    if (!publish(search::Result{individual}, leaders_of(population_.island_now(individual.island)))) {
        return;
    }
    if (individual.is_reused()) {
        return;
    }
    ++evaluations_;
    if (search::has_failed(individual)) {
        // The next evaluations may fail at once: this worker asks for single leases, which world rank 0 may delay.
        seconds_per_evaluation_ = 0;
        send_lease(search::LeaseMessage::Kind::give_back, lease_client_.release());
    }
    evaluator_.finished(individual, population_);
    if (state_ == State::searching && !individual.is_repeat()) {
        exchange(individual);
    }
}

/// Publishes the progress of unfinished individuals. The island's leaders receive a new rung, because they compare
/// their individuals with it. Only world rank 0 receives new epochs, because world rank 0 counts the epochs of all
/// individuals.
void Worker::tell_progress() {
    for (search::Individual& individual : evaluator_.take_progress()) {
        const search::Individual* known = population_.find(individual.id);
        const bool is_at_rung = known == nullptr || known->pruning->rung < individual.pruning->rung;
        const int island = population_.island_now(individual.island);
        publish(search::Started{std::move(individual)}, is_at_rung ? leaders_of(island) : std::vector<std::int32_t>());
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

/// Reports to world rank 0 that this worker runs nothing and starts nothing more. Then waits for the other workers.
void Worker::leave() {
    report();
    send_lease(search::LeaseMessage::Kind::done, lease_client_.return_leases());
    state_ = State::waiting;
}

}  // namespace finch::island
