#include "finch/evaluate/command_evaluator.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/copy_folder.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/evaluate/fault.hpp"
#include "finch/evaluate/kept_evaluations.hpp"

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

CommandEvaluator::CommandEvaluator(const config::Config& config, Programs& programs, const comm::Group& group,
                                   std::uint64_t run, std::function<const search::Population&()> population,
                                   std::function<double()> seconds_left)
    : GroupEvaluator(config, group),
      objective_(std::get<config::CommandObjective>(config.objective)),
      programs_(programs),
      population_(std::move(population)),
      seconds_left_(std::move(seconds_left)),
      rung_checkpoints_(programs.run(), run),
      running_(static_cast<std::size_t>(config.workers.slots)),
      seconds_of_silence_(static_cast<double>(
          cluster::Environment::of_this_process().number("FINCH_TEST_SILENCE").value_or(seconds_before_warning))) {}

void CommandEvaluator::start(search::Individual individual) {
    const std::uint32_t slot = free_slot();
    running_[slot].individual = std::move(individual);
    begin(slot, false);
}

void CommandEvaluator::begin(std::uint32_t slot, bool is_retry) {
    Running& running = running_[slot];
    search::Individual taken = std::move(running.individual);
    running = Running{};
    running.is_retry = is_retry;
    running.individual = std::move(taken);
    running.curve = ReportedCurve(group_.size());
    begin_as_heir(slot);
    running.began = steady_seconds();
    search::Individual& individual = running.individual;
    running.rung = individual.pruning->rung;
    running.epochs = individual.epochs;
    running.tell_at = running.began + config_.checkpoint.training_seconds;
    running.port = free_port();
    Order order{.kind = Order::Kind::start, .slot = slot, .port = running.port};
    order.resumes = individual.is_of_earlier_start();
    if (order.resumes && !objective_.persistent) {
        running.curve.recall(programs_.file_of(individual.id, "reports"));
        running.tell_at = running.began;  // an earlier start may not have reported this progress
    }
    individual.epochs = running.curve.epochs().empty() ? 0 : running.curve.epochs().back().epoch;
    individual.started = individual.started > 0 ? individual.started : unix_seconds();
    die_of(individual.id);
    order.individual = individual;
    running.used = true;
    command(order);
}

void CommandEvaluator::look() {
    Order order{.kind = Order::Kind::advance};
    for (const Running& running : running_) {
        order.answers.push_back(running.answers);
    }
    last_look_ = steady_seconds();
    has_copied_ = false;
    command(order);
}

double CommandEvaluator::youngest() const {
    double began = 0;
    for (const Running& running : running_) {
        began = running.used ? std::max(began, running.began) : began;
    }
    return began > 0 ? steady_seconds() - began : 0;
}

std::vector<search::Individual> CommandEvaluator::advance() {
    const bool has_something = programs_.wait(wait_for_programs(last_seconds_, youngest()));
    std::vector<search::Individual> done;
    if (!has_something && group_.size() > 1 && steady_seconds() - last_look_ < seconds_between_looks) {
        return done;
    }
    look();
    const std::vector<Programs::Standing> standings = standings_;  // other Orders clear standings_
    for (std::uint32_t slot = 0; slot < running_.size(); ++slot) {
        if (!running_[slot].used) {
            continue;
        }
        take_reports(slot);
        if (standings[slot].runs) {
            decide(slot, standings[slot]);
        } else if (!may_be_of_a_stop(slot, standings[slot])) {
            const Programs::Fault fault = standings[slot].fault;
            if (!done.empty() && (fault == Programs::Fault::storage || fault == Programs::Fault::not_started)) {
                return done;  // to be recorded first, since note_starts() may throw
            }
            note_starts(slot, standings[slot]);
            if (auto individual = ended(slot, fault)) {
                done.push_back(std::move(*individual));
            }
        }
    }
    return done;
}

void CommandEvaluator::take_reports(std::uint32_t slot) {
    Running& running = running_[slot];
    for (const ReportLine& line : programs_.take_reports(slot)) {
        if (line.kind == ReportLine::Kind::question) {
            running.answers.stop_from += running.last_pruning ? 0 : 1;
            ++running.answers.decided;
        } else {
            take_report(running, line);
        }
    }
}

void CommandEvaluator::take_report(Running& running, const ReportLine& line) {
    search::Individual& individual = running.individual;
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
    const std::vector<double>& losses = running.curve.losses();
    individual.epochs = running.curve.epochs().back().epoch;
    if (!objective_.persistent && !running.curve.keep(programs_.file_of(individual.id, "reports"))) {
        spdlog::warn("epoch {} of {} cannot be kept for a later start", individual.epochs, to_text(individual.id));
    }
    const bool is_last = has_reported_all(running);
    // After a stop request, rungs are left to the next start: copies of checkpoints would delay the stop.
    const bool stops = cluster::stop_request() != StopRequest::none;
    if (!running.last_pruning && !is_last && !stops && search::prunes(config_.pruning)) {
        const std::int64_t epochs = objective_.epochs > 0 ? objective_.epochs : individual.epochs;
        // The costs so far are for this comparison alone: add_time() adds the time of this start at its end.
        search::Individual now = individual;
        now.best_epoch = now.epochs;
        now.accuracy = running.curve.epochs().back().validation_accuracy;
        now.metrics = running.curve.metrics();
        now.training_seconds += steady_seconds() - running.began;
        static_cast<void>(search::judge(config_.costs, {}, now));
        const std::int32_t rung = individual.pruning->rung;
        if (search::ends_early(config_.pruning, losses, epochs, population_(), now)) {
            running.last_pruning = *now.pruning;
            return;
        }
        individual.pruning = now.pruning;
        if (config_.inherit && individual.pruning->rung > rung && config_.inherit->rungs.contains(std::ssize(losses))) {
            keep_at_rung(running, line.checkpoint);
        }
    }
}

/// Ends a running evaluation if a rank failed, the time is up, or the evaluation is pruned.
void CommandEvaluator::decide(std::uint32_t slot, const Programs::Standing& standing) {
    Running& running = running_[slot];
    const double seconds = steady_seconds() - running.began;
    const bool failed = standing.fault != Programs::Fault::none;
    if (running.end_reason != EndReason::none || (failed && may_be_of_a_stop(slot, standing))) {
        return;
    }
    if (failed) {
        end(slot, EndReason::failed_elsewhere, std::min(objective_.grace_seconds, seconds_for_other_ranks));
    } else if (objective_.timeout_seconds && seconds > *objective_.timeout_seconds && !has_copied_) {
        end(slot, has_reported_all(running) ? EndReason::complete : EndReason::timed_out, objective_.grace_seconds);
    } else if (never_exits(slot)) {
        end(slot, EndReason::complete, objective_.grace_seconds);
    } else if (running.individual.is_heir() && !running.misreport.empty()) {
        end(slot, EndReason::misreported, std::min(objective_.grace_seconds, seconds_for_other_ranks));
    } else if (running.last_pruning && !objective_.interactive) {
        end(slot, EndReason::pruned, objective_.grace_seconds);
    }
}

bool CommandEvaluator::has_reported_all(const Running& running) const {
    return objective_.epochs > 0 && running.individual.epochs >= objective_.epochs && running.misreport.empty();
}

/// True if a program has reported its last epoch in this start, and has then printed nothing for so long that it must
/// be ended: a thread or another process may keep it for ever. Warns before that.
bool CommandEvaluator::never_exits(std::uint32_t slot) {
    const Running& running = running_[slot];
    const double seconds = steady_seconds() - programs_.last_printed(slot);
    if (!running.has_reported || !has_reported_all(running) || seconds <= seconds_of_silence_) {
        return false;
    }
    if (!std::exchange(has_warned_of_silence_, true)) {
        spdlog::warn(
            "{}: it reported its last epoch, has printed nothing for {:.0f} s and still runs (a thread or another "
            "process may keep it); after search.objective.grace_seconds more, Finch ends it and takes its result",
            to_text(running.individual.id), seconds);
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
bool CommandEvaluator::may_be_of_a_stop(std::uint32_t slot, const Programs::Standing& standing) {
    Running& running = running_[slot];
    if (cluster::stop_request() != StopRequest::none) {
        return true;
    }
    if (!standing.was_signalled) {
        return false;
    }
    running.ended_at = running.ended_at > 0 ? running.ended_at : steady_seconds();
    return steady_seconds() - running.ended_at < seconds_to_hear_of_a_stop;
}

/// If no program can run here, no individual is at fault, so the function throws StorageError.
void CommandEvaluator::note_starts(std::uint32_t slot, const Programs::Standing& standing) {
    constexpr int most = 3;
    not_started_ = standing.fault == Programs::Fault::not_started ? not_started_ + 1 : 0;
    if (standing.fault == Programs::Fault::storage || not_started_ == most) {
        command({.kind = Order::Kind::release, .slot = slot, .ends_programs = true});
        const search::Individual individual = std::move(running_[slot].individual);
        running_[slot] = Running{};
        throw StorageError(fmt::format("{} cannot be evaluated: {}{}", to_text(individual.id), programs_.problem(),
                                       not_started_ == most ? fmt::format(", {} times in a row", most) : ""));
    }
}

/// Starts an evaluation a second time if its port was in use or its persistent program had ended. There is no second
/// start if the program has reported anything. A second start is possible even if Finch has ended the programs of other
/// ranks.
bool CommandEvaluator::begins_again(std::uint32_t slot, Programs::Fault fault) {
    Running& running = running_[slot];
    const bool said_nothing = !running.has_reported && running.misreport.empty();
    const bool port_taken = fault == Programs::Fault::port_taken;
    const bool was_ended = running.end_reason == EndReason::pruned || running.end_reason == EndReason::timed_out;
    if (was_ended || running.is_retry || !said_nothing || !(objective_.persistent || port_taken)) {
        return false;
    }
    spdlog::info("{} begins once more{}: {}", to_text(running.individual.id),
                 port_taken ? fmt::format(" with another MASTER_PORT than {}", running.port) : "", programs_.problem());
    begin(slot, true);
    return true;
}

/// Adds the time and the energy of this start to `individual`. Called after the evaluation's release.
void CommandEvaluator::add_time(search::Individual& individual, double began) const {
    individual.joules = (individual.training_seconds > 0 ? individual.joules : 0) + programs_.joules();
    const double seconds = steady_seconds() - began;
    // A program may have ended while Finch copied files. For interactive programs, `began` leaves out the copies.
    individual.training_seconds +=
        seconds - (objective_.interactive ? 0 : std::clamp(programs_.seconds_since_end(), 0.0, seconds));
}

/// Returns why an evaluation failed; empty if it did not.
std::string CommandEvaluator::problem_of(const Running& running, bool failed) const {
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
        const std::int32_t example = running.individual.is_heir() ? running.individual.inherited_epochs + 1 : 3;
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
std::optional<search::Individual> CommandEvaluator::ended(std::uint32_t slot, Programs::Fault fault) {
    Running& running = running_[slot];
    const bool failed = fault != Programs::Fault::none && running.end_reason != EndReason::complete;
    const bool is_mute = running.curve.own_epochs() == 0;  // a late report would count for the next individual
    const bool ends_programs = failed || is_mute || running.end_reason != EndReason::none;
    command({.kind = Order::Kind::release, .slot = slot, .ends_programs = ends_programs});
    if (failed && begins_again(slot, fault)) {
        return std::nullopt;
    }
    search::Individual individual = std::move(running.individual);
    individual.finished = unix_seconds();
    add_time(individual, running.began);
    last_seconds_ = steady_seconds() - running.began;
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
        individual.problem = problem_of(running, failed);
        const bool is_good = !failed && individual.problem.empty();
        individual.outcome = is_good ? search::Outcome::evaluated : search::Outcome::failed;
    }
    judge(individual);
    search::mark_bad_loss(individual);
    running = Running{};
    return individual;
}

/// True at intervals, so that progress is recorded even if this start is killed (search/attempts.hpp).
bool CommandEvaluator::is_to_be_told(std::uint32_t slot) const {
    return steady_seconds() >= running_[slot].tell_at;
}

/// If the total number of epochs is not known, the progress is a number below 1 that grows with the epochs.
void CommandEvaluator::describe_progress(std::uint32_t slot) {
    search::Individual& individual = running_[slot].individual;
    const auto epochs = static_cast<double>(individual.epochs);
    individual.progress =
        objective_.epochs > 0 ? std::min(1.0, epochs / static_cast<double>(objective_.epochs)) : epochs / (epochs + 1);
    running_[slot].tell_at = steady_seconds() + config_.checkpoint.training_seconds;
}

void CommandEvaluator::finished(const search::Individual& individual) {
    if (individual.is_heir()) {
        remove_folder(programs_.file_of(individual.id, std::string(config::parent_suffix)));
    }
    const search::Standing mine = search::standing(individual);
    const bool stays = keeps_evaluation(objective_.keep, individual, population_().best_trained());
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
