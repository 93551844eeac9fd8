#include "finch/island/worker.hpp"

#include "finch/base/format.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
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

/// The unfinished individuals that fall to `self`: dealt out in the order of ids, the same way by every leader.
std::deque<search::Individual> dealt_to(const search::Population& population, std::int32_t self, int workers) {
    std::deque<search::Individual> mine;
    std::int32_t turn = 0;
    for (const search::Individual* individual : population.unfinished()) {
        if (turn++ % workers == self) {
            mine.push_back(*individual);
        }
    }
    return mine;
}

}  // namespace

Worker::Worker(Setup setup, const search::Space& space, search::Population population,
               const search::Propagator& propagator, Evaluator& evaluator, Journal& journal, comm::Mailbox& mailbox,
               Archive* archive, Observer& observer, Surroundings surroundings)
    : setup_(std::move(setup)),
      space_(space),
      population_(std::move(population)),
      propagator_(propagator),
      evaluator_(evaluator),
      journal_(journal),
      mailbox_(mailbox),
      archive_(archive),
      observer_(observer),
      surroundings_(std::move(surroundings)),
      unfinished_(dealt_to(population_, setup_.self, workers())),
      generation_(setup_.bred_before),
      began_(surroundings_.steady_seconds()) {
    if (archive_ != nullptr) {
        office_.emplace(setup_.budget, population_, setup_.workers_before, workers());
        taken_in_from_.assign(static_cast<std::size_t>(workers()), 0);
        in_last_archive_ = taken_in_from_;
    }
    last_archive_ = last_checkpoint_ = last_report_ = began_;
    report();
}

bool Worker::step() {
    did_something_ = false;
    receive();
    heed_stop();
    if (phase_ == Phase::living) {
        live();
    }
    if (phase_ == Phase::waiting_for_leaders && (!office_ || office_->all_done())) {
        mailbox_.begin_closing();
        phase_ = Phase::closing;
    }
    if (phase_ == Phase::closing && mailbox_.closed()) {
        receive();
        phase_ = Phase::over;
    }
    if (phase_ != Phase::over) {
        housekeeping();
    }
    return phase_ != Phase::over;
}

Ending Worker::run() {
    while (step()) {
        if (!did_something_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    return ending_;
}

/// The heart: breed where there is room, train a little, and tell what ended.
void Worker::live() {
    heed_budget();
    fill_slots();
    if (!evaluator_.idle()) {
        did_something_ = true;
        for (search::Individual& done : evaluator_.advance()) {
            settle(std::move(done));
        }
    }
    leave_if_over();
}

void Worker::receive() {
    for (const comm::Envelope& envelope : mailbox_.take()) {
        did_something_ = true;
        search::RecordReader reader(envelope.bytes, setup_.run, fmt::format("message of worker {}", envelope.from));
        while (const auto record = reader.next()) {
            handle(*record, envelope.from);
        }
        for (const std::string& problem : reader.problems()) {
            observer_.warned(problem);
        }
    }
}

void Worker::handle(const search::Record& record, int from) {
    if (const auto* tickets = std::get_if<search::Tickets>(&record)) {
        handle_tickets(*tickets);
    } else if (const auto* archived = std::get_if<search::Archived>(&record)) {
        journal_.forget(archived->records);
    } else if (const auto* asked = std::get_if<search::Halt>(&record)) {
        archive_ != nullptr ? halt(*asked) : obey(*asked);
    } else {
        if (archive_ != nullptr) {
            ++taken_in_from_[static_cast<std::size_t>(from)];
        }
        take_in(record);
    }
}

void Worker::handle_tickets(const search::Tickets& tickets) {
    using Kind = search::Tickets::Kind;
    if (tickets.kind == Kind::grant || tickets.kind == Kind::exhausted) {
        purse_.receive(tickets);
        if (halted_) {
            send_tickets(Kind::give_back, purse_.empty());
        }
        return;
    }
    if (const auto answer = office_->answer(tickets)) {
        send(tickets.worker, *answer);
    }
}

/// Merges what a record says; on world rank 0 also keeps what only the archive holds.
void Worker::take_in(const search::Record& record) {
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
    const auto message = std::make_shared<Bytes>(search::encode(record, setup_.run));
    try {
        journal_.write(*message);
    } catch (const ApiError& error) {
        observer_.warned(fmt::format("the journal cannot be written, so this run stops: {}", error.what()));
        save_and_stop(Ending::storage);
        return false;
    }
    const search::Record told = without_curve(record);
    const auto short_message = std::make_shared<Bytes>(search::encode(told, setup_.run));
    take_in(archive_ != nullptr ? record : told);
    bool told_archivist = archive_ != nullptr;
    if (archive_ != nullptr) {
        ++taken_in_from_[static_cast<std::size_t>(setup_.self)];
    }
    for (const std::int32_t worker : to) {
        if (worker != setup_.self) {
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
        if (setup_.island_of_worker[static_cast<std::size_t>(worker)] == island) {
            leaders.push_back(worker);
        }
    }
    return leaders;
}

void Worker::send_tickets(search::Tickets::Kind kind, std::int64_t count) {
    send(0, search::Tickets{kind, setup_.self, count, seconds_per_evaluation_});
}

void Worker::send(std::int32_t to, const search::Record& record) {
    const bool counted = !std::holds_alternative<search::Tickets>(record);
    mailbox_.send(to, std::make_shared<Bytes>(search::encode(record, setup_.run)), counted);
}

void Worker::fill_slots() {
    while (phase_ == Phase::living && evaluator_.has_free_slot() && !unfinished_.empty()) {
        search::Individual individual = std::move(unfinished_.front());
        unfinished_.pop_front();
        if (halted_) {
            individual.outcome = search::Outcome::stopped;
            individual.finished = surroundings_.unix_seconds();
            settle(std::move(individual));
        } else {
            evaluator_.start(std::move(individual));
        }
        did_something_ = true;
    }
    while (phase_ == Phase::living && !halted_ && evaluator_.has_free_slot() && purse_.take()) {
        did_something_ = true;
        start_bred();
    }
    if (!halted_ && unfinished_.empty() && purse_.should_ask(evaluator_.wants_soon())) {
        send_tickets(search::Tickets::Kind::request, 0);
    }
}

void Worker::start_bred() {
    search::Individual individual;
    individual.id = search::Id::make(setup_.restart, static_cast<std::uint32_t>(setup_.self), ++sequence_);
    individual.island = island();
    individual.generation = ++generation_;
    individual.born = surroundings_.unix_seconds();
    individual.node = setup_.node;
    individual.device = setup_.device;
    individual.ranks = setup_.ranks;
    individual.threads = setup_.threads;
    bool exists = false;
    for (std::uint32_t attempt = 0; attempt < breeding_attempts && !exists; ++attempt) {
        RandomStream random(setup_.seed, Purpose::breeding, individual.id.value, attempt);
        search::Offspring offspring = propagator_.breed(population_, island(), random);
        individual.genome = std::move(offspring.genome);
        individual.parents = offspring.parents;
        individual.bred_by = offspring.bred_by;
        exists = evaluator_.can_exist(individual.genome);
    }
    if (!exists) {
        individual.outcome = search::Outcome::failed;
        individual.problem = fmt::format("no network that can exist in {} breedings", breeding_attempts);
        individual.finished = surroundings_.unix_seconds();
        settle(std::move(individual));
    } else if (publish(search::Started{individual}, {})) {
        evaluator_.start(std::move(individual));
    }
}

/// Write first, then tell; then maybe exchange.
void Worker::settle(search::Individual individual) {
    const double seconds = individual.finished - individual.started;
    if (individual.started > 0 && seconds >= 0) {
        seconds_per_evaluation_ = std::max(seconds, 1e-9);
    }
    if (!publish(search::Result{individual}, leaders_of(island()))) {
        return;
    }
    ++evaluations_;
    evaluator_.settled(individual);
    if (!halted_) {
        exchange(individual);
    }
}

void Worker::exchange(const search::Individual& after) {
    RandomStream random(setup_.seed, Purpose::exchange, after.id.value);
    const search::IslandLeaders leaders{island(), leaders_of(island())};
    for (const search::Record& record :
         search::plan_exchange(setup_.exchange, population_, leaders, setup_.self, random)) {
        const auto* move = std::get_if<search::Move>(&record);
        const int target = move != nullptr ? move->home.island : std::get<search::Copy>(record).island;
        std::vector<std::int32_t> to = leaders_of(target);
        to.insert(to.end(), leaders.workers.begin(), leaders.workers.end());
        publish(record, to);
    }
}

/// Once nothing runs here and nothing more will be started: says so, and waits for the others.
void Worker::leave_if_over() {
    const bool nothing_comes = halted_ || purse_.exhausted();
    if (phase_ != Phase::living || !nothing_comes || purse_.waiting() || !unfinished_.empty() || !evaluator_.idle()) {
        return;
    }
    report();
    send_tickets(search::Tickets::Kind::done, purse_.empty());
    phase_ = Phase::waiting_for_leaders;
}

}  // namespace finch::island
