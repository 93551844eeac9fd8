// How a worker stops (signals, the deadline, budgets) and saves its work (snapshots, the archive).
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/loss_order.hpp"
#include "finch/base/words.hpp"
#include "finch/island/worker.hpp"
#include "finch/search/outcomes.hpp"

#include <algorithm>
#include <utility>

namespace finch::island {
namespace {

constexpr double report_seconds = 10;
constexpr double reports_per_second = 100;  ///< at world rank 0, at most

}  // namespace

void Worker::check_stop() {
    if (state_ == State::over || exit_reason_ == ExitReason::urgent) {
        return;
    }
    const StopRequest stop = hooks_.stop();
    if (stop == StopRequest::urgent) {
        save_and_leave(ExitReason::urgent);
        return;
    }
    constexpr double margin = 5;       // s
    constexpr double unmeasured = 10;  // s, for a snapshot before the first is measured
    const double snapshot = evaluator_.checkpoint_seconds();
    const double needed = margin + archive_cost_ + (snapshot > 0 ? snapshot : unmeasured);
    const bool can_stop = exit_reason_ == ExitReason::complete &&
                          (state_ == State::searching || (archivist_ && state_ == State::waiting));
    const auto time_is_up = [&] { return hooks_.end_time > 0 && hooks_.unix_seconds() + needed > hooks_.end_time; };
    if (can_stop && time_is_up() && hooks_.new_end_time) {
        hooks_.end_time = std::max(hooks_.end_time, hooks_.new_end_time());
    }
    if (can_stop && (stop == StopRequest::orderly || time_is_up())) {
        halt({false, stop == StopRequest::orderly
                         ? "a signal asked to stop"
                         : fmt::format("the job's time is nearly over: it ends at {} (SLURM_JOB_END_TIME or "
                                       "FINCH_DEADLINE)",
                                       date_and_time(hooks_.end_time))});
    } else if (can_stop && gives_up()) {
        give_up();
    }
}

/// True if too many evaluations gave no result. False after the last evaluation of the budget: the search is then
/// complete even without a result.
bool Worker::gives_up() const {
    if (!archivist_ || !options_.give_up_after || archivist_->leases().is_closed() ||
        archivist_->failed().in_vain() < *options_.give_up_after) {
        return false;
    }
    const auto ended = static_cast<std::int64_t>(population_.evaluations());
    const Budget& budget = options_.budget;
    return (!budget.evaluations || ended < *budget.evaluations) &&
           (!budget.generations || ended < *budget.generations * workers());
}

/// World rank 0 only. Stops the run and keeps the rest of the budget, because every further individual would probably
/// fail.
void Worker::give_up() {
    const std::string ended = counted(archivist_->failed().in_vain(), "evaluation");
    halt({false, fmt::format("given up: {} ended, none with a result (search.give_up_after): {}", ended,
                             search::Outcomes(population_).text())});
    if (exit_reason_ == ExitReason::stopped) {
        exit_reason_ = ExitReason::gave_up;
    }
}

/// Returns a message if a budget other than the evaluations is used; else nothing.
std::optional<std::string> Worker::used_budget() {
    const Budget& budget = options_.budget;
    const search::Individual* best = budget.target_loss ? population_.best() : nullptr;
    if (best != nullptr && best->is_complete() && best->violation == 0 &&
        !is_better_loss(*budget.target_loss, best->loss)) {
        return fmt::format("search.budget.target_loss is reached: {}", best->loss);
    }
    if (budget.epochs && population_.epochs() >= *budget.epochs) {
        return fmt::format("the budget of {} is used", counted(*budget.epochs, "epoch"));
    }
    const double hours = (hooks_.steady_seconds() - began_) / 3600;
    if (budget.hours && options_.hours_before + hours >= *budget.hours) {
        return fmt::format("the budget of hours is used: {}", *budget.hours);
    }
    if (budget.node_hours && options_.node_hours_before + options_.nodes * hours >= *budget.node_hours) {
        return fmt::format("the budget of node hours is used: {}", *budget.node_hours);
    }
    return std::nullopt;
}

/// Ends or stops the whole run. World rank 0 tells every leader once. Every other leader tells only world rank 0, and
/// then obeys immediately. A stop may follow an end, but an end never follows a stop.
void Worker::halt(const search::Halt& asked) {
    if (exit_reason_ != ExitReason::complete || (asked.end_running && archivist_ && archivist_->leases().is_closed())) {
        return;
    }
    notify(asked);
    if (archivist_) {
        archivist_->leases().close();
        event(asked.end_running ? "end" : "stop", asked.why);
    }
    obey(asked);
}

void Worker::obey(const search::Halt& halt) {
    if (exit_reason_ != ExitReason::complete) {
        return;
    }
    const ExitReason reason = halt.end_running ? ExitReason::complete : ExitReason::stopped;
    if (state_ == State::searching) {
        save_and_leave(reason);
    } else {
        exit_reason_ = reason;  // nothing is left to train here, but the whole run may be incomplete
    }
}

/// Saves the running evaluations and leaves. The next start resumes unfinished individuals. If the run ended because a
/// budget was used, the next start resumes individuals only if that budget is raised.
void Worker::save_and_leave(ExitReason reason) {
    if (exit_reason_ == ExitReason::urgent || exit_reason_ == ExitReason::storage) {
        return;
    }
    exit_reason_ = reason;
    unfinished_.clear();
    if (reason != ExitReason::complete && hooks_.stopping) {
        hooks_.stopping();
    }
    if (state_ == State::searching) {
        if (const double seconds = evaluator_.stop_seconds(); seconds > 0 && reason != ExitReason::urgent) {
            announce(seconds);
        }
        record_saved([this] { return evaluator_.stop(); });
    }
    if (reason == ExitReason::storage) {
        notify(search::Halt{false, fmt::format("worker {} cannot use its files", options_.self)});
    }
    sync_journal(true);
    if (reason == ExitReason::urgent) {
        state_ = State::over;  // a peer may be dead: no waiting
    } else if (state_ == State::searching) {
        leave();
    }
}

/// Stops the run because this leader cannot write its files or cannot read its training data. A later start can resume
/// the run.
void Worker::stop_for_storage(const std::string& why) {
    if (exit_reason_ != ExitReason::storage) {
        observer_.warned(fmt::format("this run stops, as its files cannot be written or read: {}", why));
    }
    save_and_leave(ExitReason::storage);
}

/// Saves the running evaluations with `save`, then records the progress of each.
void Worker::record_saved(const std::function<std::vector<search::Individual>()>& save) {
    if (std::exchange(is_saving_, true)) {
        return;  // recursive call: a record failed, and the snapshots exist already
    }
    for (const search::Individual& saved : save()) {
        if (exit_reason_ != ExitReason::storage) {
            publish(search::Started{saved}, {});
        }
    }
    is_saving_ = false;
}

void Worker::sync_journal(bool now) {
    try {
        journal_.sync(now);
    } catch (const ApiError& error) {
        if (state_ == State::searching) {
            stop_for_storage(error.what());
        } else {
            observer_.warned(error.what());  // all records were sent and are in the last archive
        }
    }
}

double Worker::report_due() const {
    return last_report_ + std::max(report_seconds, workers() / reports_per_second);
}

double Worker::next_due() const {
    double due = liveness_.next_sign();
    if (archivist_ && state_ != State::closing) {
        due = std::min(due, archivist_->next_archive());
    }
    if (state_ == State::searching) {
        due = std::min({due, report_due(), checkpoint_due()});
        if (options_.budget.hours) {
            due = std::min(due, began_ + 3600 * (*options_.budget.hours - options_.hours_before));
        }
        if (options_.budget.node_hours) {
            const double left = *options_.budget.node_hours - options_.node_hours_before;
            due = std::min(due, began_ + 3600 * left / options_.nodes);
        }
    }
    return due;
}

/// Does periodic work: utilisation, snapshots, the archive, the log.
void Worker::housekeeping() {
    const double now = hooks_.steady_seconds();
    if (busy_since_ > 0) {
        busy_seconds_ += now - busy_since_;
    }
    busy_since_ = state_ == State::searching && !evaluator_.idle() ? now : 0;
    if (state_ == State::searching && now >= report_due()) {
        report();
    }
    if (state_ == State::searching && now >= checkpoint_due()) {
        announce_if_long(evaluator_.checkpoint_seconds());
        record_saved([this] { return evaluator_.checkpoint(); });
        last_checkpoint_ = hooks_.steady_seconds();
    }
    // No messages may be sent once closing has begun; the last archive is written after closing.
    if (archivist_ && state_ != State::closing && archivist_->archive_is_due()) {
        write_archive();
    }
    sync_journal(false);
    observer_.tick(population_);
}

/// World rank 0 only. Writes the archive, then tells each leader how many of its records need no journal any more.
void Worker::write_archive() {
    announce_if_long(archive_cost_);
    evaluator_.keep_alive(allowed_seconds(archive_cost_));
    const std::vector<std::uint64_t> safe = archivist_->write_archive(population_);
    archive_cost_ = archivist_->archive_seconds();
    if (safe.empty()) {
        event("storage",
              fmt::format("the archive could not be written (try {} of {})", archivist_->failures(), Archivist::tries));
        if (archivist_->failures() >= Archivist::tries && exit_reason_ == ExitReason::complete) {
            halt({false, "the archive cannot be written"});
        }
        return;
    }
    journal_.forget(safe.front());
    for (std::int32_t worker = 1; worker < workers(); ++worker) {
        send(worker, search::Archived{safe[static_cast<std::size_t>(worker)], archive_cost_});
    }
}

}  // namespace finch::island
