// The parts of a worker's life that concern stopping and what is kept: signals, the deadline, budgets, the archive.
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/island/worker.hpp"

#include <algorithm>
#include <utility>

namespace finch::island {
namespace {

constexpr double report_seconds = 10;
constexpr double reports_per_second = 100;  ///< that world rank 0 takes in at most
constexpr int archive_tries = 3;

}  // namespace

void Worker::heed_stop() {
    if (phase_ == Phase::over || ending_ == Ending::urgent) {
        return;
    }
    const Stop stop = surroundings_.stop();
    if (stop == Stop::urgent) {
        save_and_leave(Ending::urgent);
        return;
    }
    constexpr double margin = 5;       // s
    constexpr double unmeasured = 10;  // s, for a snapshot that nobody has seen yet
    const double snapshot = evaluator_.checkpoint_seconds();
    const double needed = margin + archive_cost_ + (snapshot > 0 ? snapshot : unmeasured);
    const bool time_is_up =
        surroundings_.end_time > 0 && surroundings_.unix_seconds() + needed > surroundings_.end_time;
    const bool can_stop = phase_ == Phase::living || (archive_ != nullptr && phase_ == Phase::waiting_for_leaders);
    if ((stop == Stop::orderly || time_is_up) && ending_ == Ending::complete && can_stop) {
        halt({false, stop == Stop::orderly ? "a signal asked to stop" : "the job's time is nearly over"});
    }
}

/// What says that a budget other than one of tickets is used; nothing where none is.
std::optional<std::string> Worker::used_budget() const {
    const Budget& budget = setup_.budget;
    const search::Individual* best = population_.best();
    if (budget.target_loss && best != nullptr && best->loss <= *budget.target_loss) {
        return fmt::format("the target loss is reached: {}", best->loss);
    }
    const double hours = (surroundings_.steady_seconds() - began_) / 3600;
    if (budget.hours && setup_.hours_before + hours >= *budget.hours) {
        return fmt::format("the budget of {} hours is used", *budget.hours);
    }
    if (budget.node_hours && setup_.node_hours_before + setup_.nodes * hours >= *budget.node_hours) {
        return fmt::format("the budget of {} node hours is used", *budget.node_hours);
    }
    return std::nullopt;
}

/// Every leader that still trains heeds them, so they are heeded until the last one is done.
void Worker::heed_budget() {
    if (const auto why = halted_ ? std::nullopt : used_budget()) {
        halt({true, *why});
    }
}

/// Ends or stops the whole run. World rank 0 tells every leader, once; another leader tells world rank 0, and obeys at
/// once. A stop may follow an end, not the other way round.
void Worker::halt(const search::Halt& asked) {
    if (ending_ != Ending::complete || (halted_ && asked.end_running)) {
        return;
    }
    tell_of(asked);
    if (archive_ != nullptr) {
        office_->close();
        event(asked.end_running ? "end" : "stop", asked.why);
    }
    obey(asked);
}

void Worker::tell_of(const search::Halt& halt) {
    if (archive_ == nullptr) {
        send(0, halt);
        return;
    }
    for (std::int32_t worker = 1; worker < workers(); ++worker) {
        send(worker, halt);
    }
}

void Worker::obey(const search::Halt& halt) {
    if (ending_ != Ending::complete || (halted_ && halt.end_running)) {
        return;
    }
    const Ending ending = halt.end_running ? Ending::complete : Ending::stopped;
    if (phase_ == Phase::living) {
        save_and_leave(ending);
    } else {
        // This worker has nothing left to train; but a stop means that the run as a whole may not be complete.
        halted_ = true;
        ending_ = ending;
    }
}

/// Saves what runs and leaves; the unfinished go on at the next start, after an end where the budget is raised.
void Worker::save_and_leave(Ending ending) {
    if (ending_ == Ending::urgent || ending_ == Ending::storage) {
        return;
    }
    ending_ = ending;
    halted_ = true;
    unfinished_.clear();
    if (ending != Ending::complete && surroundings_.stopping) {
        surroundings_.stopping();
    }
    if (phase_ == Phase::living) {
        checkpoint();
    }
    if (ending == Ending::storage) {
        tell_of({false, fmt::format("worker {} cannot write its journal", setup_.self)});
    }
    sync_journal(true);
    if (ending == Ending::urgent) {
        phase_ = Phase::over;  // a peer may be dead: nobody is waited for
        return;
    }
    if (phase_ == Phase::living) {
        report();
        send_tickets(search::Tickets::Kind::done, purse_.empty());
        phase_ = Phase::waiting_for_leaders;
    }
}

/// Saves what runs, then records how far each is.
void Worker::checkpoint() {
    if (std::exchange(is_saving_, true)) {
        return;  // a record could not be written, and the worker leaves: the snapshots are there already
    }
    for (const search::Individual& saved : evaluator_.checkpoint()) {
        if (ending_ != Ending::storage) {
            publish(search::Started{saved}, {});
        }
    }
    is_saving_ = false;
}

/// What this leader has to keep cannot be written: the run stops, to be resumed.
void Worker::stop_for_storage(const std::string& why) {
    if (ending_ != Ending::storage) {
        observer_.warned(fmt::format("the results cannot be kept, so this run stops: {}", why));
    }
    save_and_leave(Ending::storage);
}

void Worker::sync_journal(bool now) {
    try {
        journal_.sync(now);
    } catch (const ApiError& error) {
        if (phase_ == Phase::living) {
            stop_for_storage(error.what());
        } else {
            observer_.warned(error.what());  // everything was told; it is in the last archive
        }
    }
}

void Worker::event(const std::string& kind, const std::string& text) {
    observer_.said(text);
    publish(search::Event{surroundings_.unix_seconds(), setup_.self, kind, text}, {});
}

void Worker::report() {
    const double now = surroundings_.steady_seconds();
    search::WorkerReport told;
    told.restart = setup_.restart;
    told.worker = setup_.self;
    told.island = island();
    told.ranks = setup_.ranks;
    told.threads = setup_.threads;
    told.node = setup_.node;
    told.device = setup_.device;
    told.time = surroundings_.unix_seconds();
    told.up_seconds = now - began_;
    told.busy_seconds = busy_seconds_;
    told.evaluations = evaluations_;
    last_report_ = now;
    if (archive_ != nullptr) {
        take_in(told);
    } else {
        send(0, told);  // not journaled: the next one says it all again
    }
}

/// What is due now and then: utilisation, snapshots, the archive, the log.
void Worker::housekeeping() {
    const double now = surroundings_.steady_seconds();
    if (busy_since_ > 0) {
        busy_seconds_ += now - busy_since_;
    }
    busy_since_ = phase_ == Phase::living && !evaluator_.idle() ? now : 0;
    if (phase_ == Phase::living && now - last_report_ >= std::max(report_seconds, workers() / reports_per_second)) {
        report();
    }
    if (phase_ == Phase::living && now - last_checkpoint_ >= setup_.training_seconds) {
        announce_if_long(evaluator_.checkpoint_seconds());
        checkpoint();
        sync_journal(true);
        last_checkpoint_ = surroundings_.steady_seconds();
    }
    // Once the closing has begun, nothing is sent any more; the last archive is written after it.
    if (archive_ != nullptr && phase_ != Phase::closing &&
        now - last_archive_ >= std::max(setup_.archive_seconds, 100 * archive_cost_)) {
        archive_now();
    }
    sync_journal(false);
    observer_.tick(population_);
}

/// World rank 0: writes the archive, then tells each leader how many of its records are in it and in its predecessor.
void Worker::archive_now() {
    const double start = surroundings_.steady_seconds();
    announce_if_long(archive_cost_);
    evaluator_.keep_alive(allowed_seconds(archive_cost_));
    const bool written = archive_->write(population_);
    last_archive_ = surroundings_.steady_seconds();
    archive_cost_ = last_archive_ - start;
    if (!written) {
        ++archive_failures_;
        event("storage",
              fmt::format("the archive could not be written (try {} of {})", archive_failures_, archive_tries));
        if (archive_failures_ >= archive_tries && ending_ == Ending::complete) {
            halt({false, "the archive cannot be written"});
        }
        return;
    }
    archive_failures_ = 0;
    for (const search::Id id : archive_->curves_kept()) {
        population_.forget_curve(id);
    }
    // A leader keeps what the archive's predecessor does not hold: should the newest file be damaged, nothing is lost.
    const std::vector<std::uint64_t> safe = std::exchange(in_last_archive_, taken_in_from_);
    for (std::int32_t worker = 0; worker < workers(); ++worker) {
        const search::Archived archived{safe[static_cast<std::size_t>(worker)], archive_cost_};
        if (worker == setup_.self) {
            journal_.forget(archived.records);
        } else {
            send(worker, archived);
        }
    }
}

}  // namespace finch::island
