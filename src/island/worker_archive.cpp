// The parts of a worker's life that concern stopping and what is kept: signals, the deadline, budgets, the archive.
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/island/worker.hpp"

#include <algorithm>
#include <utility>

namespace finch::island {
namespace {

constexpr double report_seconds = 10;
constexpr int archive_tries = 3;

}  // namespace

void Worker::heed_stop() {
    if (phase_ == Phase::over || ending_ == Ending::urgent) {
        return;
    }
    const Stop stop = surroundings_.stop();
    if (stop == Stop::urgent) {
        save_and_stop(Ending::urgent);
        return;
    }
    // A snapshot took `checkpoint_seconds`; a slow file system may take three times that, and the archive follows it.
    const double needed = 15 + 3 * evaluator_.checkpoint_seconds();
    const bool time_is_up =
        surroundings_.end_time > 0 && surroundings_.unix_seconds() + needed > surroundings_.end_time;
    const bool can_stop = phase_ == Phase::living || (archive_ != nullptr && phase_ == Phase::waiting_for_leaders);
    if ((stop == Stop::orderly || time_is_up) && ending_ == Ending::complete && can_stop) {
        halt({false, stop == Stop::orderly ? "a signal asked to stop" : "the job's time is nearly over"});
    }
}

/// The budgets in hours and loss. World rank 0 decides for all; a leader that knows of a good enough loss starts
/// nothing more.
void Worker::heed_budget() {
    if (halted_) {
        return;
    }
    const search::Individual* best = population_.best();
    if (setup_.budget.target_loss && best != nullptr && best->loss <= *setup_.budget.target_loss) {
        halt({true, fmt::format("the target loss is reached: {}", best->loss)});
        return;
    }
    const double hours = setup_.hours_before + (surroundings_.steady_seconds() - began_) / 3600;
    if (archive_ != nullptr && setup_.budget.hours && hours >= *setup_.budget.hours) {
        halt({true, fmt::format("the budget of {} hours is used", *setup_.budget.hours)});
    }
}

/// Ends or stops the whole run. World rank 0 tells every leader; another leader tells world rank 0, and obeys at once.
/// A stop may follow an end, not the other way round.
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
    if (phase_ != Phase::living) {
        // This worker has nothing left to train; but a stop means that the run as a whole may not be complete.
        ending_ = !halt.end_running && ending_ == Ending::complete ? Ending::stopped : ending_;
        return;
    }
    if (halt.end_running) {
        end_running();
    } else if (ending_ == Ending::complete) {
        save_and_stop(Ending::stopped);
    }
}

/// What runs ends now, as `stopped`; what was to go on never starts.
void Worker::end_running() {
    if (halted_) {
        return;
    }
    halted_ = true;
    for (search::Individual& individual : evaluator_.stop_all()) {
        settle(std::move(individual));
    }
    while (!unfinished_.empty() && phase_ == Phase::living) {
        fill_slots();
    }
    if (const std::int64_t left = purse_.empty(); left > 0) {
        send_tickets(search::Tickets::Kind::give_back, left);
    }
}

/// Saves what runs and leaves; the unfinished go on at the next start.
void Worker::save_and_stop(Ending ending) {
    if (ending_ == Ending::urgent || ending_ == Ending::storage) {
        return;
    }
    ending_ = ending;
    halted_ = true;
    unfinished_.clear();
    if (surroundings_.stopping) {
        surroundings_.stopping();
    }
    if (phase_ == Phase::living) {
        evaluator_.checkpoint();
    }
    if (ending == Ending::storage) {
        tell_of({false, fmt::format("worker {} cannot write its journal", setup_.self)});
    }
    journal_.sync(true);
    if (ending == Ending::urgent) {
        phase_ = Phase::over;  // a peer may be dead: nobody is waited for
        return;
    }
    if (phase_ == Phase::living) {
        send_tickets(search::Tickets::Kind::done, purse_.empty());
        phase_ = Phase::waiting_for_leaders;
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
    publish(told, {});
}

/// What is due now and then: utilisation, snapshots, the archive, the log.
void Worker::housekeeping() {
    const double now = surroundings_.steady_seconds();
    if (busy_since_ > 0) {
        busy_seconds_ += now - busy_since_;
    }
    busy_since_ = phase_ == Phase::living && !evaluator_.idle() ? now : 0;
    if (phase_ == Phase::living && now - last_report_ >= report_seconds) {
        report();
    }
    if (phase_ == Phase::living && now - last_checkpoint_ >= setup_.training_seconds) {
        evaluator_.checkpoint();
        journal_.sync(true);
        last_checkpoint_ = surroundings_.steady_seconds();
    }
    // Once the closing has begun, nothing is sent any more; the last archive is written after it.
    if (archive_ != nullptr && phase_ != Phase::closing &&
        now - last_archive_ >= std::max(setup_.archive_seconds, 100 * archive_cost_)) {
        archive_now();
    }
    journal_.sync(false);
    observer_.tick(population_);
}

/// World rank 0: writes the archive, then tells each leader how many of its records are in it and in its predecessor.
void Worker::archive_now() {
    const double start = surroundings_.steady_seconds();
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
        const search::Archived archived{safe[static_cast<std::size_t>(worker)]};
        if (worker == setup_.self) {
            journal_.forget(archived.records);
        } else {
            send(worker, archived);
        }
    }
}

}  // namespace finch::island
