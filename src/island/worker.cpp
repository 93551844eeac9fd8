#include "finch/island/worker.hpp"

#include "finch/base/files.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

namespace finch::island {
namespace {

constexpr int breeding_attempts = 100;

/// As it travels to all but the archivist, who alone keeps learning curves.
search::Record without_curve(search::Record record) {
    if (auto* result = std::get_if<search::Result>(&record)) {
        result->individual.curve = {};
    }
    return record;
}

/// The unfinished individuals by the worker that goes on with each: those of an island are dealt out to its workers in
/// the order of ids, the same way by every leader. One that has taken its process down comes after the others.
std::vector<std::deque<search::Individual>> deal(const search::Population& population, const WorkerOptions& options) {
    std::vector<std::deque<search::Individual>> dealt(options.island_of_worker.size());
    std::map<int, std::vector<std::size_t>> workers_of;
    for (std::size_t worker = 0; worker < dealt.size(); ++worker) {
        workers_of[options.island_of_worker[worker]].push_back(worker);
    }
    std::map<int, std::size_t> turn;
    for (const search::Individual* individual : population.unfinished()) {
        const int island = population.island_now(individual->island);
        const std::vector<std::size_t>& workers = workers_of[island];
        const bool to_worker_0 = options.one_at_a_time || workers.empty();
        dealt[to_worker_0 ? 0 : workers[turn[island]++ % workers.size()]].push_back(*individual);
    }
    for (auto& mine : dealt) {
        std::stable_partition(mine.begin(), mine.end(),
                              [](const search::Individual& one) { return one.attempt.deaths == 0; });
    }
    return dealt;
}

/// In [0, 1), far apart for workers that are near each other (the golden ratio's multiples): when in a period each
/// writes its snapshots, so that not all write at once.
double phase_of(std::int32_t worker) {
    const double turns = 0.6180339887498949 * worker;
    return turns - std::floor(turns);
}

}  // namespace

Worker::Worker(WorkerOptions options, const search::Space& space, search::Population population,
               const search::Propagator& propagator, Evaluator& evaluator, Journal& journal, comm::Mailbox& mailbox,
               Archive* archive, Observer& observer, Hooks hooks)
    : options_(std::move(options)),
      space_(space),
      population_(std::move(population)),
      propagator_(propagator),
      evaluator_(evaluator),
      journal_(journal),
      mailbox_(mailbox),
      archive_(archive),
      observer_(observer),
      hooks_(std::move(hooks)),
      generation_(options_.bred_before),
      began_(hooks_.steady_seconds()),
      liveness_(options_.self, workers(), options_.timeout_seconds, began_) {
    population_.limit_memberships({.island = island(),
                                   .breeding = propagator_.population(),
                                   .exchange = static_cast<std::size_t>(options_.exchange.migrants),
                                   .everywhere = archive_ != nullptr});
    auto dealt = deal(population_, options_);
    if (archive_ != nullptr) {
        std::vector<std::int64_t> counts;
        for (const auto& one : dealt) {
            counts.push_back(std::ssize(one));
        }
        lease_server_.emplace(options_.budget, population_, options_.earlier, counts);
        taken_in_from_.assign(static_cast<std::size_t>(workers()), 0);
        in_last_archive_ = taken_in_from_;
    }
    unfinished_ = std::move(dealt[static_cast<std::size_t>(options_.self)]);
    last_archive_ = last_report_ = began_;
    last_checkpoint_ = began_ - phase_of(options_.self) * options_.training_seconds;
    report();
}

bool Worker::step() {
    did_something_ = false;
    receive();
    check_stop();
    if (phase_ == Phase::living) {
        live();
    }
    answer_held_requests();
    if (phase_ == Phase::waiting_for_leaders && (!lease_server_ || lease_server_->all_done())) {
        mailbox_.begin_closing();
        phase_ = Phase::closing;
    }
    if (phase_ == Phase::closing && mailbox_.closed()) {
        receive();
        phase_ = Phase::over;
    }
    if (phase_ != Phase::over) {
        check_liveness();
        housekeeping();
    }
    return phase_ != Phase::over;
}

ExitReason Worker::run() {
    while (step()) {
        if (!did_something_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    return exit_reason_;
}

/// The heart: breed where there is room, train a little, and tell what ended.
void Worker::live() {
    check_budget();
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
        } catch (const StorageError& error) {
            stop_for_storage(error.what());
        }
    }
    leave_if_over();
}

void Worker::receive() {
    for (const comm::Envelope& envelope : mailbox_.take()) {
        did_something_ = true;
        liveness_.heard(envelope.from, hooks_.steady_seconds());
        search::RecordReader reader(envelope.bytes, options_.run, fmt::format("message of worker {}", envelope.from));
        while (const auto record = reader.next()) {
            handle(*record, envelope.from);
        }
        for (const std::string& problem : reader.problems()) {
            observer_.warned(problem);
        }
    }
}

void Worker::handle(const search::Record& record, int from) {
    if (const auto* message = std::get_if<search::LeaseMessage>(&record)) {
        handle_lease(*message);
    } else if (const auto* archived = std::get_if<search::Archived>(&record)) {
        journal_.forget(archived->records);
        archive_cost_ = archived->seconds;
    } else if (const auto* asked = std::get_if<search::Halt>(&record)) {
        archive_ != nullptr ? halt(*asked) : obey(*asked);
    } else if (const auto* sign = std::get_if<search::Alive>(&record)) {
        liveness_.heard(from, hooks_.steady_seconds(), sign->seconds);
    } else {
        if (archive_ != nullptr && !std::holds_alternative<search::WorkerReport>(record)) {
            ++taken_in_from_[static_cast<std::size_t>(from)];
        }
        merge_record(record);
    }
}

void Worker::handle_lease(const search::LeaseMessage& message) {
    using Kind = search::LeaseMessage::Kind;
    if (message.kind == Kind::grant || message.kind == Kind::exhausted) {
        lease_client_.receive(message);
        if (halted_) {
            send_lease(Kind::give_back, lease_client_.return_leases());
        }
        return;
    }
    if (message.kind == Kind::request && options_.one_at_a_time && !halted_ && (alone_ || !unfinished_.empty())) {
        held_requests_.push_back(message);
    } else if (const auto answer = lease_server_->answer(message)) {
        send(message.worker, *answer);
    }
}

/// World rank 0: once the unfinished of earlier starts are through.
void Worker::answer_held_requests() {
    if (held_requests_.empty() || (!halted_ && (alone_ || !unfinished_.empty()))) {
        return;
    }
    for (const search::LeaseMessage& request : std::exchange(held_requests_, {})) {
        if (const auto answer = lease_server_->answer(request)) {
            send(request.worker, *answer);
        }
    }
}

/// Tells those who watch this leader that it lives, and throws if one of those that it watches does not.
void Worker::check_liveness() {
    evaluator_.keep_alive(0);
    const double now = hooks_.steady_seconds();
    if (liveness_.sign_is_due(now)) {
        announce(0);
    }
    if (const auto worker = liveness_.silent(now)) {
        const auto at = static_cast<std::size_t>(*worker);
        throw Error(
            fmt::format("worker {} ({}) gave no sign of life for {} s (workers.timeout_seconds, at least three "
                        "report intervals): it is stopped or hangs",
                        *worker, at < options_.leader_names.size() ? options_.leader_names[at] : "of unknown place",
                        liveness_.limit()));
    }
}

/// Before an operation on files that took `last_seconds` when it was done last; 0: it is done for the first time.
void Worker::announce_if_long(double last_seconds) {
    if (last_seconds <= 0 || last_seconds > 1) {
        announce(allowed_seconds(last_seconds));
    }
}

/// A sign of life, to world rank 0; of world rank 0, to everybody. `seconds`, if not 0: what begins now may take so
/// long.
void Worker::announce(double seconds) {
    for (std::int32_t worker = 0; worker < (options_.self == 0 ? workers() : 1); ++worker) {
        if (worker != options_.self) {
            send(worker, search::Alive{seconds});
        }
    }
    if (seconds > 0) {
        liveness_.hurry();
    }
}

/// Merges what a record says; on world rank 0 also keeps what only the archive holds.
void Worker::merge_record(const search::Record& record) {
    if (archive_ != nullptr) {
        if (const auto* happened = std::get_if<search::Event>(&record)) {
            archive_->event(*happened);
        } else if (const auto* told = std::get_if<search::WorkerReport>(&record)) {
            archive_->report(*told);
        }
    }
    const bool is_new = population_.merge(record);
    if (const auto* result = std::get_if<search::Result>(&record); result != nullptr && is_new) {
        observer_.settled(result->individual, population_);
    }
}

bool Worker::publish(const search::Record& record, const std::vector<std::int32_t>& to) {
    const auto message = std::make_shared<Bytes>(search::encode(record, options_.run));
    try {
        journal_.write(*message);
    } catch (const ApiError& error) {
        stop_for_storage(error.what());
        return false;
    }
    const search::Record told = without_curve(record);
    const auto short_message = std::make_shared<Bytes>(search::encode(told, options_.run));
    merge_record(archive_ != nullptr ? record : told);
    bool told_archivist = archive_ != nullptr;
    if (archive_ != nullptr) {
        ++taken_in_from_[static_cast<std::size_t>(options_.self)];
    }
    for (const std::int32_t worker : to) {
        if (worker != options_.self) {
            mailbox_.send(worker, worker == 0 ? message : short_message, true);
            told_archivist = told_archivist || worker == 0;
        }
    }
    if (!told_archivist) {
        mailbox_.send(0, message, true);
    }
    return true;
}

std::vector<std::int32_t> Worker::leaders_of(int island) const {
    std::vector<std::int32_t> leaders;
    for (std::int32_t worker = 0; worker < workers(); ++worker) {
        if (options_.island_of_worker[static_cast<std::size_t>(worker)] == island) {
            leaders.push_back(worker);
        }
    }
    return leaders;
}

void Worker::send_lease(search::LeaseMessage::Kind kind, std::int64_t count) {
    send(0, search::LeaseMessage{kind, options_.self, count, seconds_per_evaluation_});
}

void Worker::send(std::int32_t to, const search::Record& record) {
    const bool counted =
        !std::holds_alternative<search::LeaseMessage>(record) && !std::holds_alternative<search::Alive>(record);
    mailbox_.send(to, std::make_shared<Bytes>(search::encode(record, options_.run)), counted);
}

void Worker::fill_slots() {
    while (phase_ == Phase::living && !halted_ && !unfinished_.empty() && may_go_on_with(unfinished_.front())) {
        did_something_ = true;
        search::Individual individual = std::move(unfinished_.front());
        unfinished_.pop_front();
        if (individual.attempt.deaths > 0 || options_.one_at_a_time) {
            alone_ = individual.id;
        }
        start(std::move(individual));
    }
    while (phase_ == Phase::living && !halted_ && !alone_ && evaluator_.has_free_slot() && lease_client_.take()) {
        did_something_ = true;
        start_bred();
    }
    if (!halted_ && !alone_ && unfinished_.empty() && lease_client_.should_ask(evaluator_.wants_soon())) {
        send_lease(search::LeaseMessage::Kind::request, 0);
    }
}

/// One that took its process down trains with nothing beside it, so that no other is taken for the cause.
bool Worker::may_go_on_with(const search::Individual& individual) const {
    const bool is_to_be_alone = individual.attempt.deaths > 0 || options_.one_at_a_time;
    return !alone_ && evaluator_.has_free_slot() && (!is_to_be_alone || evaluator_.idle());
}

/// Recorded before it begins: should the process die of it, the next start knows who was in training.
void Worker::start(search::Individual individual) {
    individual.attempt.restart = options_.restart;
    individual.attempt.worker = options_.self;
    individual.ranks = options_.ranks;
    if (publish(search::Started{individual}, {})) {
        evaluator_.start(std::move(individual));
    }
}

void Worker::start_bred() {
    search::Individual individual;
    individual.id = search::Id::make(options_.restart, static_cast<std::uint32_t>(options_.self), ++sequence_);
    individual.island = island();
    individual.generation = ++generation_;
    individual.born = hooks_.unix_seconds();
    individual.node = options_.node;
    individual.device = options_.device;
    individual.ranks = options_.ranks;
    individual.threads = options_.threads;
    individual.attempt = {options_.restart, options_.self};
    bool exists = false;
    for (std::uint32_t attempt = 0; attempt < breeding_attempts && !exists; ++attempt) {
        RandomStream random(options_.seed, Purpose::breeding, individual.id.value, attempt);
        search::Offspring offspring = propagator_.breed(population_, island(), random);
        individual.genome = std::move(offspring.genome);
        individual.parents = offspring.parents;
        individual.bred_by = offspring.bred_by;
        exists = evaluator_.can_exist(individual.genome);
    }
    if (!exists) {
        individual.outcome = search::Outcome::failed;
        individual.problem = fmt::format("no network that can exist in {} breedings", breeding_attempts);
        individual.finished = hooks_.unix_seconds();
        settle(std::move(individual));
    } else {
        start(std::move(individual));
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
    if (!publish(search::Result{individual}, leaders_of(population_.island_now(individual.island)))) {
        return;
    }
    ++evaluations_;
    evaluator_.settled(individual);
    if (!halted_) {
        exchange(individual);
    }
}

void Worker::exchange(const search::Individual& after) {
    RandomStream random(options_.seed, Purpose::exchange, after.id.value);
    const search::IslandLeaders leaders{island(), leaders_of(island())};
    for (const search::Record& record :
         search::plan_exchange(options_.exchange, population_, leaders, options_.self, random)) {
        const auto* move = std::get_if<search::Move>(&record);
        const int target = move != nullptr ? move->home.island : std::get<search::Copy>(record).island;
        std::vector<std::int32_t> to = leaders_of(target);
        to.insert(to.end(), leaders.workers.begin(), leaders.workers.end());
        publish(record, to);
    }
}

/// Once nothing runs here and nothing more will be started: says so, and waits for the others.
void Worker::leave_if_over() {
    const bool nothing_comes = halted_ || lease_client_.exhausted();
    if (phase_ != Phase::living || !nothing_comes || lease_client_.waiting() || !unfinished_.empty() ||
        !evaluator_.idle()) {
        return;
    }
    report();
    send_lease(search::LeaseMessage::Kind::done, lease_client_.return_leases());
    phase_ = Phase::waiting_for_leaders;
}

}  // namespace finch::island
