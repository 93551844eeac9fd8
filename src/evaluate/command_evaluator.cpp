#include "finch/evaluate/command_evaluator.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/evaluate/fault.hpp"
#include "finch/evaluate/order.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

namespace finch::evaluate {
namespace {

namespace fs = std::filesystem;

constexpr double seconds_of_wait = 0.005;        // leader, for its own programs
constexpr double seconds_between_looks = 0.05;   // of all ranks of a worker
constexpr double seconds_to_hear_of_a_stop = 2;  // Slurm signals programs and Finch at nearly the same time
constexpr double seconds_for_other_ranks = 5;    // once one has failed
constexpr double seconds_after_programs = 3;     // of a stop's time, for journals and the archive
constexpr double longest_grace = 120;

/// The metrics that have a column of their own in /curves.
Epoch epoch_of(const ReportLine& line, std::int32_t number, std::int32_t ranks) {
    const auto value = [&](std::string_view name) {
        return line.value(name).value_or(std::numeric_limits<double>::quiet_NaN());
    };
    return {.epoch = number,
            .ranks = ranks,
            .training_loss = value("training_loss"),
            .training_accuracy = value("training_accuracy"),
            .validation_loss = value("loss"),
            .validation_accuracy = value("accuracy"),
            .learning_rate = value("learning_rate"),
            .seconds = value("seconds")};
}

/// The last report counts.
void take_over_last_epoch(search::Individual& individual) {
    if (!individual.curve.empty()) {
        const Epoch& last = individual.curve.back();
        individual.epochs = individual.best_epoch = last.epoch;
        individual.loss = std::isfinite(last.validation_loss) ? last.validation_loss : search::Individual::not_measured;
        individual.accuracy = last.validation_accuracy;
    }
}

/// Whether a program says that the port which it was given is in use.
bool is_port_taken(const std::string& problem) {
    return problem.find("EADDRINUSE") != std::string::npos ||
           problem.find("ddress already in use") != std::string::npos;
}

void remove_folder(const fs::path& folder) {
    std::error_code failed;
    fs::remove_all(folder, failed);
    if (failed) {
        spdlog::warn("{} could not be removed: {}", folder.string(), failed.message());
    }
    fs::remove(folder.parent_path(), failed);  // once it is empty
}

}  // namespace

CommandEvaluator::CommandEvaluator(const config::Config& config, Programs& programs, const comm::Group& group,
                                   std::function<const search::Population&()> population,
                                   std::function<double()> seconds_left)
    : config_(config),
      objective_(std::get<config::CommandObjective>(config.objective)),
      programs_(programs),
      group_(group),
      population_(std::move(population)),
      seconds_left_(std::move(seconds_left)),
      running_(static_cast<std::size_t>(config.workers.slots)) {}

bool CommandEvaluator::has_free_slot() const {
    return std::any_of(running_.begin(), running_.end(), [](const Running& running) { return !running.used; });
}

bool CommandEvaluator::idle() const {
    return std::none_of(running_.begin(), running_.end(), [](const Running& running) { return running.used; });
}

std::vector<Programs::Standing> CommandEvaluator::command(const ProgramOrder& order) {
    last_order_ = steady_seconds();
    return programs_.command(order);
}

void CommandEvaluator::keep_alive(double seconds) {
    if (seconds > 0 || steady_seconds() - last_order_ > seconds_between_orders) {
        command({.kind = ProgramOrder::Kind::wait, .seconds_to_next = seconds});
    }
}

void CommandEvaluator::start(search::Individual individual) {
    const auto free =
        std::find_if(running_.begin(), running_.end(), [](const Running& running) { return !running.used; });
    *free = Running{.used = true, .individual = std::move(individual)};
    free->rung = free->individual.pruning.rung;
    free->epochs = free->individual.epochs;
    begin(static_cast<std::uint32_t>(free - running_.begin()));
}

void CommandEvaluator::begin(std::uint32_t slot) {
    Running& running = running_[slot];
    search::Individual& individual = running.individual;
    ProgramOrder order{.kind = ProgramOrder::Kind::start, .slot = slot, .port = free_port()};
    order.resumes = individual.id.restart() < individual.attempt.restart;
    if (order.resumes) {
        recall_reports(running);
    }
    individual.started = individual.started > 0 ? individual.started : unix_seconds();
    running.began = steady_seconds();
    die_of(individual.id);
    Bytes bytes;
    search::write_individual(individual, false, bytes);
    order.individual.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    command(order);
}

std::vector<Programs::Standing> CommandEvaluator::look() {
    // One slot's answers travel with each look: that of the first whose program waits for one.
    ProgramOrder order{.kind = ProgramOrder::Kind::look};
    for (std::uint32_t slot = 0; slot < running_.size(); ++slot) {
        if (running_[slot].used && programs_.open_questions(slot) > 0) {
            order.slot = slot;
            order.answers = running_[slot].answers;
        }
    }
    last_look_ = steady_seconds();
    return command(order);
}

std::vector<search::Individual> CommandEvaluator::advance() {
    const bool has_something = programs_.wait(seconds_of_wait);
    std::vector<search::Individual> done;
    if (!has_something && group_.size() > 1 && steady_seconds() - last_look_ < seconds_between_looks) {
        return done;
    }
    const std::vector<Programs::Standing> standings = look();
    for (std::uint32_t slot = 0; slot < running_.size(); ++slot) {
        if (!running_[slot].used) {
            continue;
        }
        take_reports(slot);
        if (standings[slot].runs) {
            decide(slot, standings[slot]);
        } else if (!may_be_of_a_stop(slot)) {
            if (auto individual = ended(slot, standings[slot].failed)) {
                done.push_back(std::move(*individual));
            }
        }
    }
    return done;
}

void CommandEvaluator::take_reports(std::uint32_t slot) {
    Running& running = running_[slot];
    for (const ReportLine& line : programs_.take_reports(slot)) {
        if (line.kind == ReportLine::Kind::report) {
            take_report(running, line);
        } else if (line.kind == ReportLine::Kind::question) {
            running.answers.push_back(running.is_pruned ? 1 : 0);
        } else if (line.kind == ReportLine::Kind::problem && running.misreport.empty()) {
            running.misreport = line.problem;
        }
    }
}

/// Epochs count from 1 on in each start, unless the program says which it is; it may say some once more.
void CommandEvaluator::take_report(Running& running, const ReportLine& line) {
    search::Individual& individual = running.individual;
    const double said = line.value("epoch").value_or(static_cast<double>(++running.reported));
    const bool is_epoch = said >= 1 && said <= std::numeric_limits<std::int32_t>::max() && said == std::floor(said);
    if (!line.value("loss") || !is_epoch) {
        if (running.misreport.empty()) {
            running.misreport = !is_epoch ? fmt::format("an epoch of {}", said) : "a report without a loss";
        }
        return;
    }
    const auto number = static_cast<std::int32_t>(said);
    while (!individual.curve.empty() && individual.curve.back().epoch >= number) {
        individual.curve.pop_back();
        running.losses.pop_back();
    }
    individual.curve.push_back(epoch_of(line, number, group_.size()));
    running.losses.push_back(*line.value("loss"));
    individual.epochs = number;
    keep_reports(running);
    running.is_pruned = running.is_pruned || (search::prunes(config_.pruning) &&
                                              search::ends_early(config_.pruning, running.losses,
                                                                 objective_.epochs > 0 ? objective_.epochs : number,
                                                                 population_(), individual));
}

/// What an evaluation that still runs has to be told.
void CommandEvaluator::decide(std::uint32_t slot, const Programs::Standing& standing) {
    Running& running = running_[slot];
    const double seconds = steady_seconds() - running.began;
    if (standing.failed && running.ending == Ending::none) {
        end(slot, Ending::failed_elsewhere, std::min(objective_.grace_seconds, seconds_for_other_ranks));
    } else if (objective_.timeout_seconds && seconds > *objective_.timeout_seconds &&
               running.ending != Ending::timed_out) {
        end(slot, Ending::timed_out, objective_.grace_seconds);
    } else if (running.is_pruned && !objective_.interactive && running.ending == Ending::none) {
        end(slot, Ending::pruned, objective_.grace_seconds);
    }
}

void CommandEvaluator::end(std::uint32_t slot, Ending why, double grace_seconds) {
    running_[slot].ending = why;
    command({.kind = ProgramOrder::Kind::end, .slot = slot, .grace_seconds = grace_seconds});
}

/// Slurm signals all processes of a step: what ends once a stop was asked for is unfinished. One that a signal from
/// elsewhere has ended is judged when it is clear that Finch itself was not asked to stop.
bool CommandEvaluator::may_be_of_a_stop(std::uint32_t slot) {
    Running& running = running_[slot];
    if (cluster::stop_request() != StopRequest::none) {
        return true;
    }
    if (!programs_.was_signalled(slot)) {
        return false;
    }
    running.ended_at = running.ended_at > 0 ? running.ended_at : steady_seconds();
    return steady_seconds() - running.ended_at < seconds_to_hear_of_a_stop;
}

/// The individual with its outcome. Nothing where it begins once more.
std::optional<search::Individual> CommandEvaluator::ended(std::uint32_t slot, bool failed) {
    command({.kind = ProgramOrder::Kind::release, .slot = slot});
    Running& running = running_[slot];
    if (failed && running.ending == Ending::none && !running.is_retry && is_port_taken(programs_.problem())) {
        spdlog::info("{} begins once more: its port was taken", to_text(running.individual.id));
        search::Individual individual = std::move(running.individual);
        individual.curve.clear();
        running = Running{.used = true, .is_retry = true, .individual = std::move(individual)};
        begin(slot);
        return std::nullopt;
    }
    search::Individual individual = std::move(running.individual);
    individual.finished = unix_seconds();
    individual.training_seconds += steady_seconds() - running.began;
    individual.outcome = search::Outcome::failed;
    take_over_last_epoch(individual);
    if (running.ending == Ending::timed_out) {
        individual.problem =
            fmt::format("it did not end within {} s (search.objective.timeout_seconds)", *objective_.timeout_seconds);
    } else if (running.ending == Ending::pruned || (!running.answers.empty() && running.answers.back() != 0)) {
        individual.outcome = search::Outcome::pruned;
    } else if (failed) {
        individual.problem = programs_.problem();
    } else if (!running.misreport.empty()) {
        individual.problem = "it said what cannot be read: " + running.misreport;
    } else if (individual.curve.empty()) {
        individual.problem = "it ended without a loss: no line 'finch loss=…' on standard output";
    } else {
        individual.outcome = std::isfinite(individual.loss) ? search::Outcome::evaluated : search::Outcome::diverged;
    }
    running = Running{};
    return individual;
}

std::vector<search::Individual> CommandEvaluator::take_progress() {
    std::vector<search::Individual> told;
    for (Running& running : running_) {
        const bool is_at_rung =
            search::compares_at_rungs(config_.pruning) && running.individual.pruning.rung > running.rung;
        if (running.used && (is_at_rung || (config_.budget.epochs && running.individual.epochs > running.epochs))) {
            running.rung = running.individual.pruning.rung;
            running.epochs = running.individual.epochs;
            told.push_back(running.individual);
            told.back().curve.clear();
        }
    }
    return told;
}

void CommandEvaluator::settled(const search::Individual& individual) {
    const fs::path folder = programs_.folder_of(individual.id);
    const search::Standing mine = search::standing(individual);
    const bool went_wrong = !individual.ranks_by_loss();
    const auto stays = [&] {
        switch (objective_.keep) {
            case config::Keep::none:
                return false;
            case config::Keep::failed:
                return went_wrong;
            case config::Keep::best: {
                const search::Individual* const best = population_().best();
                const bool is_best = best == nullptr || !search::better(search::standing(*best), mine);
                return mine.ranks_by_loss && is_best && (!kept_ || search::better(mine, *kept_));
            }
            case config::Keep::all:
                return true;
        }
        return true;
    };
    if (!stays()) {
        remove_folder(folder);
    } else if (objective_.keep == config::Keep::best) {
        if (kept_) {
            remove_folder(programs_.folder_of(kept_->id));
        }
        kept_ = mine;
    }
}

/// Hands the stop on, waits for programs to save, and ends those that do not.
std::vector<search::Individual> CommandEvaluator::stop() {
    std::vector<search::Individual> saved;
    if (idle()) {
        return saved;
    }
    const double begin = steady_seconds();
    const double left = seconds_left_();
    const double grace = std::min({objective_.grace_seconds, longest_grace,
                                   left > 0 ? std::max(0.0, left - seconds_after_programs) : longest_grace});
    command({.kind = ProgramOrder::Kind::signal});
    const auto runs = [&] {
        const std::vector<Programs::Standing> standings = look();
        return std::any_of(standings.begin(), standings.end(), [](const auto& standing) { return standing.runs; });
    };
    while (runs() && steady_seconds() - begin < grace) {
        static_cast<void>(programs_.wait(seconds_between_looks));
    }
    for (std::uint32_t slot = 0; slot < running_.size(); ++slot) {
        if (running_[slot].used) {
            end(slot, running_[slot].ending, 1);
        }
    }
    while (runs() && steady_seconds() - begin < grace + seconds_after_programs) {
        static_cast<void>(programs_.wait(seconds_between_looks));
    }
    for (std::uint32_t slot = 0; slot < running_.size(); ++slot) {
        if (running_[slot].used) {
            take_reports(slot);
            saved.push_back(interrupted(slot));
        }
    }
    return saved;
}

search::Individual CommandEvaluator::interrupted(std::uint32_t slot) {
    command({.kind = ProgramOrder::Kind::release, .slot = slot});
    search::Individual individual = std::move(running_[slot].individual);
    individual.training_seconds += steady_seconds() - running_[slot].began;
    individual.progress =
        objective_.epochs > 0
            ? std::min(1.0, static_cast<double>(individual.epochs) / static_cast<double>(objective_.epochs))
            : 0;
    individual.curve.clear();
    running_[slot] = Running{};
    return individual;
}

void CommandEvaluator::dismiss() {
    command(ProgramOrder{});
}

/// The epochs that a program has reported, for a later start of the run, in which it goes on.
void CommandEvaluator::keep_reports(const Running& running) const {
    if (objective_.persistent) {
        return;  // such programs begin anew
    }
    const Epoch& last = running.individual.curve.back();
    std::ofstream file(programs_.folder_of(running.individual.id) / "reports", std::ios::binary | std::ios::app);
    file << fmt::format(
        "finch epoch={} loss={} accuracy={} training_loss={} training_accuracy={} learning_rate={} "
        "seconds={}\n",
        last.epoch, last.validation_loss, last.validation_accuracy, last.training_loss, last.training_accuracy,
        last.learning_rate, last.seconds);
}

void CommandEvaluator::recall_reports(Running& running) const {
    std::ifstream file(programs_.folder_of(running.individual.id) / "reports", std::ios::binary);
    for (std::string text; std::getline(file, text);) {
        const auto line = read_report_line(text);
        const double epoch = line && line->kind == ReportLine::Kind::report ? line->value("epoch").value_or(0) : 0;
        if (!(epoch >= 1 && epoch <= 1e9 && line->value("loss"))) {
            continue;
        }
        auto& curve = running.individual.curve;
        while (!curve.empty() && curve.back().epoch >= epoch) {
            curve.pop_back();
            running.losses.pop_back();
        }
        curve.push_back(epoch_of(*line, static_cast<std::int32_t>(epoch), group_.size()));
        running.losses.push_back(*line->value("loss"));
    }
}

}  // namespace finch::evaluate
