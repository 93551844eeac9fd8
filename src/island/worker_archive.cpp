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

void Worker::check_stop() {
    if (phase_ == Phase::over || exit_reason_ == ExitReason::urgent) {
        return;
    }
    const StopRequest stop = hooks_.stop();
    if (stop == StopRequest::urgent) {
        save_and_leave(ExitReason::urgent);
        return;
    }
    constexpr double margin = 5;       // s
    constexpr double unmeasured = 10;  // s, for a snapshot that nobody has seen yet
    const double snapshot = evaluator_.checkpoint_seconds();
    const double needed = margin + archive_cost_ + (snapshot > 0 ? snapshot : unmeasured);
    const bool time_is_up = hooks_.end_time > 0 && hooks_.unix_seconds() + needed > hooks_.end_time;
    const bool can_stop = phase_ == Phase::living || (archive_ != nullptr && phase_ == Phase::waiting_for_leaders);
    if ((stop == StopRequest::orderly || time_is_up) && exit_reason_ == ExitReason::complete && can_stop) {
        halt({false, stop == StopRequest::orderly ? "a signal asked to stop" : "the job's time is nearly over"});
    }
}

/// What says that a budget other than one of evaluations is used; nothing where none is.
std::optional<std::string> Worker::used_budget() const {
    const Budget& budget = options_.budget;
    const search::Individual* best = population_.best();
    if (budget.target_loss && best != nullptr && best->loss <= *budget.target_loss) {
        return fmt::format("the target loss is reached: {}", best->loss);
    }
    const double hours = (hooks_.steady_seconds() - began_) / 3600;
    if (budget.hours && options_.hours_before + hours >= *budget.hours) {
        return fmt::format("the budget of {} hours is used", *budget.hours);
    }
    if (budget.node_hours && options_.node_hours_before + options_.nodes * hours >= *budget.node_hours) {
        return fmt::format("the budget of {} node hours is used", *budget.node_hours);
    }
    return std::nullopt;
}

/// Every leader that still trains heeds them, so they are heeded until the last one is done.
void Worker::check_budget() {
    if (const auto why = halted_ ? std::nullopt : used_budget()) {
        halt({true, *why});
    }
}

/// Ends or stops the whole run. World rank 0 tells every leader, once; another leader tells world rank 0, and obeys at
/// once. A stop may follow an end, not the other way round.
void Worker::halt(const search::Halt& asked) {
    if (exit_reason_ != ExitReason::complete || (halted_ && asked.end_running)) {
        return;
    }
    send_halt(asked);
    if (archive_ != nullptr) {
        lease_server_->close();
        event(asked.end_running ? "end" : "stop", asked.why);
    }
    obey(asked);
}

void Worker::send_halt(const search::Halt& halt) {
    if (archive_ == nullptr) {
        send(0, halt);
        return;
    }
    for (std::int32_t worker = 1; worker < workers(); ++worker) {
        send(worker, halt);
    }
}

void Worker::obey(const search::Halt& halt) {
    if (exit_reason_ != ExitReason::complete || (halted_ && halt.end_running)) {
        return;
    }
    const ExitReason reason = halt.end_running ? ExitReason::complete : ExitReason::stopped;
    if (phase_ == Phase::living) {
        save_and_leave(reason);
    } else {
        // This worker has nothing left to train; but a stop means that the run as a whole may not be complete.
        halted_ = true;
        exit_reason_ = reason;
    }
}

/// Saves what runs and leaves; the unfinished go on at the next start, after an end where the budget is raised.
void Worker::save_and_leave(ExitReason reason) {
    if (exit_reason_ == ExitReason::urgent || exit_reason_ == ExitReason::storage) {
        return;
    }
    exit_reason_ = reason;
    halted_ = true;
    unfinished_.clear();
    if (reason != ExitReason::complete && hooks_.stopping) {
        hooks_.stopping();
    }
    if (phase_ == Phase::living) {
        checkpoint();
    }
    if (reason == ExitReason::storage) {
        send_halt({false, fmt::format("worker {} cannot write its journal", options_.self)});
    }
    sync_journal(true);
    if (reason == ExitReason::urgent) {
        phase_ = Phase::over;  // a peer may be dead: nobody is waited for
        return;
    }
    if (phase_ == Phase::living) {
        report();
        send_lease(search::LeaseMessage::Kind::done, lease_client_.return_leases());
        phase_ = Phase::waiting_for_leaders;
    }
}

/// Saves what runs, then records how far each is.
void Worker::checkpoint() {
    if (std::exchange(is_saving_, true)) {
        return;  // a record could not be written, and the worker leaves: the snapshots are there already
    }
    for (const search::Individual& saved : evaluator_.checkpoint()) {
        if (exit_reason_ != ExitReason::storage) {
            publish(search::Started{saved}, {});
        }
    }
    is_saving_ = false;
}

/// What this leader has to keep cannot be written: the run stops, to be resumed.
void Worker::stop_for_storage(const std::string& why) {
    if (exit_reason_ != ExitReason::storage) {
        observer_.warned(fmt::format("the results cannot be kept, so this run stops: {}", why));
    }
    save_and_leave(ExitReason::storage);
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
    publish(search::Event{hooks_.unix_seconds(), options_.self, kind, text}, {});
}

void Worker::report() {
    const double now = hooks_.steady_seconds();
    search::WorkerReport told;
    told.restart = options_.restart;
    told.worker = options_.self;
    told.island = island();
    told.ranks = options_.ranks;
    told.threads = options_.threads;
    told.node = options_.node;
    told.device = options_.device;
    told.time = hooks_.unix_seconds();
    told.up_seconds = now - began_;
    told.busy_seconds = busy_seconds_;
    told.evaluations = evaluations_;
    last_report_ = now;
    if (archive_ != nullptr) {
        merge_record(told);
    } else {
        send(0, told);  // not journaled: the next one says it all again
    }
}

/// What is due now and then: utilisation, snapshots, the archive, the log.
void Worker::housekeeping() {
    const double now = hooks_.steady_seconds();
    if (busy_since_ > 0) {
        busy_seconds_ += now - busy_since_;
    }
    busy_since_ = phase_ == Phase::living && !evaluator_.idle() ? now : 0;
    if (phase_ == Phase::living && now - last_report_ >= std::max(report_seconds, workers() / reports_per_second)) {
        report();
    }
    if (phase_ == Phase::living && now - last_checkpoint_ >= options_.training_seconds) {
        announce_if_long(evaluator_.checkpoint_seconds());
        checkpoint();
        sync_journal(true);
        last_checkpoint_ = hooks_.steady_seconds();
    }
    // Once the closing has begun, nothing is sent any more; the last archive is written after it.
    if (archive_ != nullptr && phase_ != Phase::closing &&
        now - last_archive_ >= std::max(options_.archive_seconds, 100 * archive_cost_)) {
        archive_now();
    }
    sync_journal(false);
    observer_.tick(population_);
}

/// World rank 0: writes the archive, then tells each leader how many of its records are in it and in its predecessor.
void Worker::archive_now() {
    const double start = hooks_.steady_seconds();
    announce_if_long(archive_cost_);
    evaluator_.keep_alive(allowed_seconds(archive_cost_));
    const bool written = archive_->write(population_);
    last_archive_ = hooks_.steady_seconds();
    archive_cost_ = last_archive_ - start;
    if (!written) {
        ++archive_failures_;
        event("storage",
              fmt::format("the archive could not be written (try {} of {})", archive_failures_, archive_tries));
        if (archive_failures_ >= archive_tries && exit_reason_ == ExitReason::complete) {
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
        if (worker == options_.self) {
            journal_.forget(archived.records);
        } else {
            send(worker, archived);
        }
    }
}

}  // namespace finch::island
