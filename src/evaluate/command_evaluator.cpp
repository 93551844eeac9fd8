#include "finch/evaluate/command_evaluator.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/copy_folder.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/cluster/signals.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace finch::evaluate {
namespace {

constexpr double seconds_to_hear_of_a_stop = 2;   // Slurm signals programs and Finch at nearly the same time
constexpr double seconds_for_other_ranks = 5;     // to end after one rank has failed
constexpr long long seconds_before_warning = 60;  // of silence; FINCH_TEST_SILENCE replaces it in tests

/// Copies a program's reports to `individual`. The last reported loss is the result.
void describe(search::Individual& individual, const ReportedCurve& curve) {
    individual.curve = curve.epochs();
    individual.metrics = curve.metrics();
    if (!individual.curve.empty()) {
        const Epoch& last = individual.curve.back();
        individual.epochs = individual.best_epoch = last.epoch;
        individual.loss = std::isfinite(last.validation_loss) ? last.validation_loss : search::Individual::not_measured;
        individual.accuracy = last.validation_accuracy;
    }
}

}  // namespace

double wait_for_programs(double last_evaluation, double youngest_running) {
    constexpr double longest = 0.005;    // s; other leaders' messages may wait this long
    constexpr double shortest = 0.0005;  // s
    constexpr double share = 0.001;      // of an evaluation's duration
    return std::clamp(share * std::max(last_evaluation, youngest_running), shortest, longest);
}

CommandEvaluator::CommandEvaluator(const config::Config& config, const comm::Group& group, const CommandLine& line,
                                   process::Launcher& launcher, Programs::Place place, energy::Meter* meter)
    : GroupEvaluator(config, group, meter),
      objective_(std::get<config::CommandObjective>(config.objective)),
      programs_(config, line, group, launcher, place),
      rung_checkpoints_(programs_.run(), place.number),
      running_(slots_.size()),
      seconds_of_silence_(static_cast<double>(
          cluster::Environment::of_this_process().number("FINCH_TEST_SILENCE").value_or(seconds_before_warning))) {}

void CommandEvaluator::prepare(search::Individual& individual, Order& order, const search::Population& /*population*/) {
    Running& running = running_[order.slot] = {};
    running.curve = ReportedCurve(group_.size());
    begin_as_heir(individual, running.curve);
    running.port = order.port = free_port();
    order.resumes = individual.is_of_earlier_start();
    if (order.resumes && !objective_.persistent) {
        running.curve.recall(programs_.file_of(individual.id, "reports"));
    }
}

Answer CommandEvaluator::on_start(const Order& order) {
    const std::vector<Epoch>& epochs = running_.at(order.slot).curve.epochs();
    programs_.start(order, epochs.empty() ? 0 : epochs.back().epoch);
    return {};
}

void CommandEvaluator::begun(const Order& order) {
    Running& running = running_[order.slot];
    Slot& slot = slots_[order.slot];
    running.began = steady_seconds();
    // An earlier start may not have reported the progress that it had made.
    slot.tell_at = running.began + (order.resumes && !objective_.persistent ? 0 : config_.checkpoint.training_seconds);
    slot.individual.epochs = running.curve.epochs().empty() ? 0 : running.curve.epochs().back().epoch;
}

double CommandEvaluator::worked(std::uint32_t slot) const {
    return steady_seconds() - running_.at(slot).began;
}

double CommandEvaluator::youngest() const {
    double began = 0;
    for (const std::uint32_t slot : used_slots()) {
        began = std::max(began, running_[slot].began);
    }
    return began > 0 ? steady_seconds() - began : 0;
}

bool CommandEvaluator::wait() {
    const bool has_something = programs_.wait(wait_for_programs(last_seconds_, youngest()));
    if (!has_something && group_.size() > 1 && steady_seconds() - last_look_ < seconds_between_looks) {
        return false;
    }
    last_look_ = steady_seconds();
    return true;
}

std::optional<search::Individual> CommandEvaluator::poll(std::uint32_t slot, const search::Population& population) {
    const double seconds = worked(slot);
    const Answer answer = look(slot, &population);
    if (answer.runs) {
        decide(slot, answer, seconds);
        return std::nullopt;
    }
    if (may_be_of_a_stop(slot, answer)) {
        return std::nullopt;
    }
    note_starts(slot, answer.status);
    return ended(slot, answer.status, population);
}

Answer CommandEvaluator::look(std::uint32_t slot, const search::Population* population) {
    Running& running = running_[slot];
    const Answer answer =
        command({.kind = Order::Kind::advance, .slot = slot, .worked = worked(slot), .answers = running.answers});
    for (const ReportLine& line : programs_.take_reports(slot)) {
        if (line.kind == ReportLine::Kind::question) {
            running.answers.stop_from += running.last_pruning ? 0 : 1;
            ++running.answers.decided;
        } else {
            take_report(slot, line, population);
        }
    }
    return answer;
}

void CommandEvaluator::take_report(std::uint32_t slot, const ReportLine& line, const search::Population* population) {
    Running& running = running_[slot];
    search::Individual& individual = slots_[slot].individual;
    if (individual.is_heir() && !running.misreport.empty()) {
        return;  // decide() ends it, as it does not continue its parent
    }
    if (running.curve.repeats_parent(line)) {
        return;
    }
    if (const auto problem = running.curve.add(line)) {
        running.misreport = running.misreport.empty() ? *problem : running.misreport;
        return;
    }
    running.has_reported = true;
    individual.epochs = running.curve.epochs().back().epoch;
    if (!objective_.persistent && !running.curve.keep(programs_.file_of(individual.id, "reports"))) {
        spdlog::warn("epoch {} of {} cannot be kept for a later start", individual.epochs, to_text(individual.id));
    }
    // After a stop request, rungs are left to the next start: copies of checkpoints would delay the stop.
    const bool stops = population == nullptr || cluster::stop_request() != StopRequest::none;
    if (!running.last_pruning && !has_reported_all(slot) && !stops && search::prunes(config_.pruning)) {
        compare_at_rung(slot, line.checkpoint, *population);
    }
}

/// Prunes an evaluation that has just reported an epoch, or lets it continue.
void CommandEvaluator::compare_at_rung(std::uint32_t slot, const std::string& checkpoint,
                                       const search::Population& population) {
    Running& running = running_[slot];
    search::Individual& individual = slots_[slot].individual;
    const std::vector<double>& losses = running.curve.losses();
    const std::int64_t epochs = objective_.epochs > 0 ? objective_.epochs : individual.epochs;
    // The costs so far are for this comparison alone: add_time() adds the time of this start at its end.
    search::Individual now = individual;
    now.best_epoch = now.epochs;
    now.accuracy = running.curve.epochs().back().validation_accuracy;
    now.metrics = running.curve.metrics();
    now.training_seconds += steady_seconds() - running.began;
    static_cast<void>(search::judge(config_.costs, {}, now));
    const std::int32_t rung = individual.pruning->rung;
    if (search::ends_early(config_.pruning, losses, epochs, population, now)) {
        running.last_pruning = *now.pruning;
        return;
    }
    individual.pruning = now.pruning;
    if (config_.inherit && individual.pruning->rung > rung && config_.inherit->rungs.contains(std::ssize(losses))) {
        keep_at_rung(slot, checkpoint, population);
    }
}

/// Ends a running evaluation if a rank failed, the time is up, or the evaluation is pruned.
void CommandEvaluator::decide(std::uint32_t slot, const Answer& answer, double seconds) {
    const Running& running = running_[slot];
    const bool failed = answer.status != Status::running;
    if (running.end_reason != EndReason::none || (failed && may_be_of_a_stop(slot, answer))) {
        return;
    }
    if (failed) {
        end(slot, EndReason::failed_elsewhere, std::min(objective_.grace_seconds, seconds_for_other_ranks));
    } else if (objective_.timeout_seconds && seconds > *objective_.timeout_seconds) {
        end(slot, has_reported_all(slot) ? EndReason::complete : EndReason::timed_out, objective_.grace_seconds);
    } else if (never_exits(slot)) {
        end(slot, EndReason::complete, objective_.grace_seconds);
    } else if (slots_[slot].individual.is_heir() && !running.misreport.empty()) {
        end(slot, EndReason::misreported, std::min(objective_.grace_seconds, seconds_for_other_ranks));
    } else if (running.last_pruning && !objective_.interactive) {
        end(slot, EndReason::pruned, objective_.grace_seconds);
    }
}

bool CommandEvaluator::has_reported_all(std::uint32_t slot) const {
    return objective_.epochs > 0 && slots_[slot].individual.epochs >= objective_.epochs &&
           running_[slot].misreport.empty();
}

/// True if a program has reported its last epoch in this start, and has then printed nothing for so long that it must
/// be ended: a thread or another process may keep it for ever. Warns before that.
bool CommandEvaluator::never_exits(std::uint32_t slot) {
    const double seconds = steady_seconds() - programs_.last_printed(slot);
    if (!running_[slot].has_reported || !has_reported_all(slot) || seconds <= seconds_of_silence_) {
        return false;
    }
    if (!std::exchange(has_warned_of_silence_, true)) {
        spdlog::warn(
            "{}: it reported its last epoch, has printed nothing for {:.0f} s and still runs (a thread or another "
            "process may keep it); after search.objective.grace_seconds more, Finch ends it and takes its result",
            to_text(slots_[slot].individual.id), seconds);
    }
    return seconds > seconds_of_silence_ + objective_.grace_seconds;
}

void CommandEvaluator::end(std::uint32_t slot, EndReason why, double grace_seconds) {
    running_[slot].end_reason = why;
    command({.kind = Order::Kind::end, .slot = slot, .grace_seconds = grace_seconds});
}

/// True if a program may have ended because of a stop. Slurm signals all processes of a step, so a program that ends
/// after a stop request is unfinished. If a signal ended the program, waits until it is clear that Finch itself was not
/// asked to stop.
bool CommandEvaluator::may_be_of_a_stop(std::uint32_t slot, const Answer& answer) {
    Running& running = running_[slot];
    if (cluster::stop_request() != StopRequest::none) {
        return true;
    }
    if (!answer.was_signalled) {
        return false;
    }
    running.ended_at = running.ended_at > 0 ? running.ended_at : steady_seconds();
    return steady_seconds() - running.ended_at < seconds_to_hear_of_a_stop;
}

/// If no program can run here, no individual is at fault, so the function throws StorageError.
void CommandEvaluator::note_starts(std::uint32_t slot, Status status) {
    constexpr int most = 3;
    not_started_ = status == Status::not_started ? not_started_ + 1 : 0;
    if (status == Status::storage || not_started_ == most) {
        command({.kind = Order::Kind::release, .slot = slot, .ends_programs = true});
        throw StorageError(fmt::format("{} cannot be evaluated: {}{}", to_text(take(slot).id), programs_.problem(),
                                       not_started_ == most ? fmt::format(", {} times in a row", most) : ""));
    }
}

/// Starts an evaluation a second time if its port was in use or its persistent program had ended. There is no second
/// start if the program has reported anything. A second start is possible even if Finch has ended the programs of other
/// ranks.
bool CommandEvaluator::begins_again(std::uint32_t slot, Status status, const search::Population& population) {
    const Running& running = running_[slot];
    const bool said_nothing = !running.has_reported && running.misreport.empty();
    const bool port_taken = status == Status::port_taken;
    const bool was_ended = running.end_reason == EndReason::pruned || running.end_reason == EndReason::timed_out;
    if (was_ended || running.is_retry || !said_nothing || !(objective_.persistent || port_taken)) {
        return false;
    }
    spdlog::info("{} begins once more{}: {}", to_text(slots_[slot].individual.id),
                 port_taken ? fmt::format(" with another MASTER_PORT than {}", running.port) : "", programs_.problem());
    begin(slot, take(slot), population);
    running_[slot].is_retry = true;
    return true;
}

/// Adds the time of this start to the individual. Called after the evaluation's release.
void CommandEvaluator::add_time(std::uint32_t slot) {
    last_seconds_ = worked(slot);
    const double seconds = last_seconds_;
    // A program may have ended while Finch copied files. For interactive programs, `began` leaves out the copies.
    slots_[slot].individual.training_seconds +=
        seconds - (objective_.interactive ? 0 : std::clamp(programs_.seconds_since_end(), 0.0, seconds));
}

/// Returns why an evaluation failed; empty if it did not.
std::string CommandEvaluator::problem_of(std::uint32_t slot, bool failed) const {
    const Running& running = running_[slot];
    const search::Individual& individual = slots_[slot].individual;
    const bool is_mute = running.curve.own_epochs() == 0;
    if (running.end_reason == EndReason::timed_out) {
        return fmt::format("it did not end within {} s (search.objective.timeout_seconds)",
                           *objective_.timeout_seconds);
    }
    if (failed && running.end_reason != EndReason::misreported) {
        return programs_.problem();
    }
    const std::string errors = programs_.last_errors().empty() ? "" : "\n" + programs_.last_errors();
    if (!running.misreport.empty()) {
        const std::int32_t example = individual.is_heir() ? individual.inherited_epochs + 1 : 3;
        return fmt::format("invalid report: {}; valid is 'finch loss=0.31 epoch={}'{}", running.misreport, example,
                           errors);
    }
    if (is_mute && objective_.persistent) {
        return "it said 'finch done' before a loss";
    }
    return is_mute ? fmt::format("it ended without a loss: no line of standard output{} begins with 'finch loss='{}",
                                 group_.size() > 1 ? " of rank 0" : "", errors)
                   : "";
}

/// Returns the individual with its outcome. Returns nothing if the evaluation begins again.
std::optional<search::Individual> CommandEvaluator::ended(std::uint32_t slot, Status status,
                                                          const search::Population& population) {
    const Running& running = running_[slot];
    const bool failed = status != Status::running && running.end_reason != EndReason::complete;
    const bool is_mute = running.curve.own_epochs() == 0;  // a late report would count for the next individual
    const bool ends_programs = failed || is_mute || running.end_reason != EndReason::none;
    command({.kind = Order::Kind::release, .slot = slot, .ends_programs = ends_programs});
    if (failed && begins_again(slot, status, population)) {
        return std::nullopt;
    }
    search::Individual& individual = slots_[slot].individual;
    add_time(slot);
    describe(individual, running.curve);
    if (is_mute) {  // the last epoch of an heir is then one of its parent
        individual.loss = individual.accuracy = search::Individual::not_measured;
    }
    if (running.last_pruning) {
        individual.pruning = *running.last_pruning;
    }
    if (running.end_reason != EndReason::timed_out &&
        (running.end_reason == EndReason::pruned || running.answers.stop_from < running.answers.decided)) {
        individual.outcome = search::Outcome::pruned;
    } else {
        individual.problem = problem_of(slot, failed);
        const bool is_good = !failed && individual.problem.empty();
        individual.outcome = is_good ? search::Outcome::evaluated : search::Outcome::failed;
    }
    complete(slots_[slot]);
    search::mark_bad_loss(individual);
    return take(slot);
}

/// If the total number of epochs is not known, the progress is a number below 1 that grows with the epochs. Progress is
/// told at intervals, so that it is recorded even if this start is killed (search/attempts.hpp).
void CommandEvaluator::describe_progress(std::uint32_t slot) {
    search::Individual& individual = slots_[slot].individual;
    const auto epochs = static_cast<double>(individual.epochs);
    individual.progress =
        objective_.epochs > 0 ? std::min(1.0, epochs / static_cast<double>(objective_.epochs)) : epochs / (epochs + 1);
    slots_[slot].tell_at = steady_seconds() + config_.checkpoint.training_seconds;
}

void CommandEvaluator::finished(const search::Individual& individual, const search::Population& population) {
    if (individual.is_heir()) {
        remove_folder(programs_.file_of(individual.id, std::string(config::parent_suffix)));
    }
    const search::Standing mine = search::standing(individual);
    const bool stays = keeps_evaluation(objective_.keep, individual, population.best_trained());
    if (!stays || (kept_ && !search::better(mine, *kept_))) {
        programs_.remove_files(individual.id);
    } else if (objective_.keep == config::Keep::best) {
        if (kept_) {
            programs_.remove_files(kept_->id);
        }
        kept_ = mine;
    }
}

}  // namespace finch::evaluate
