#include "finch/run/closing.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/evaluate/kept_files.hpp"
#include "finch/report/individual.hpp"
#include "finch/report/tables.hpp"
#include "finch/run/progress.hpp"
#include "finch/run/publish.hpp"
#include "finch/run/summary.hpp"
#include "finch/search/outcomes.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>

namespace finch::run {
namespace {

std::string closing_line(const island::Worker& worker, island::ExitReason reason) {
    const search::Population& population = worker.population();
    const search::Outcomes outcomes(population);
    const bool gave_up = reason == island::ExitReason::gave_up;
    const bool is_complete = reason == island::ExitReason::complete;
    const bool is_in_vain = gave_up || (is_complete && !search::has_result(population));
    const std::string more =
        gave_up ? "the rest of the budget is kept: mend the cause and start it again; if that changes the search, with "
                  "--fresh or another --run"
        : is_in_vain && outcomes.without_result() > 0
            ? "mend what failed, then raise search.budget, or begin anew with --fresh"
        : is_in_vain ? "no evaluation ended within search.budget: raise it to resume"
                     : "";
    return fmt::format("{}{}: {}, {} unfinished{}{}{}",
                       gave_up       ? "gave up"
                       : is_complete ? "complete"
                                     : "stopped early, to be resumed",
                       is_in_vain ? " without a result" : "", outcomes.counts(),
                       population.size() - population.finished(), outcomes.problems(), more.empty() ? "" : "; ", more);
}

/// World rank 0 only. Publishes the best network. Returns false if models/best.h5 should exist but is incomplete.
bool publish(const Run& run, std::uint64_t number, const search::Population& population) {
    return !run.config.trains() ||
           publish_or_warn(run.directory, number, run.config, run.datasets(), *run.device.device,
                           search::chosen(population, run.config.final_choice));
}

/// World rank 0 only. Warns if the weights of the best individual are in another run, and names the individual in
/// models/best.h5.
void tell_of_best(const search::Population& population, const store::ArchiveFacts& facts,
                  const config::Config& config) {
    const search::Individual* best = population.best();
    const search::Individual* published = search::chosen(population, config.final_choice);
    if (best == nullptr || !best->is_of_another_run() || (published != nullptr && published->is_repeat())) {
        return;
    }
    spdlog::warn("the best individual {} has the result of {}, whose weights are not here: {}", to_text(best->id),
                 report::reused_from_text(*best, facts),
                 published != nullptr ? fmt::format("models/best.h5 is the best that was trained here, {}, {} {:.5g}",
                                                    to_text(published->id), config.measure.name, published->loss)
                                      : "there is no models/best.h5, as nothing was trained here");
}

/// World rank 0 only. True if all repeats of a final choice failed.
bool has_no_winner(const search::Population& population, const std::optional<search::FinalChoice>& choice) {
    const auto candidates = choice ? search::final_candidates(population, *choice) : std::vector<search::Candidate>();
    return !candidates.empty() && std::all_of(candidates.begin(), candidates.end(), [](const search::Candidate& one) {
        return one.finished > 0 && one.failed == one.finished;
    });
}

/// World rank 0 only. Writes the archive and copies it, so that the previous file (population.h5.previous) is complete,
/// too. If the disk has no space for the copy, the journals are kept instead. Returns false if no write succeeded.
bool write_last_archive(FileArchive& archive, const search::Population& population, RunState state) {
    archive.set_state(state);
    const bool is_written =
        archive.write(population) || archive.write(population);  // a failed write is tried once more
    if (is_written) {
        archive.complete_previous();
    }
    return is_written;
}

/// World rank 0 only. Removes files that are no longer needed.
void remove_leftovers(const Run& run, const search::Population& population) {
    try {
        remove_spare_weights(run.directory, population);
        remove_finished_trainings(run.directory, population);
        if (const auto* const command = std::get_if<config::CommandObjective>(&run.config.objective)) {
            evaluate::remove_spare_evaluations(run.directory, population, command->keep);
        }
    } catch (const std::exception& error) {
        spdlog::warn("what the run does not need any more could not be removed: {}", error.what());
    }
}

/// World rank 0 only. Writes the remaining files after an orderly end. A run is complete only if all these files were
/// written.
island::ExitReason close_run(const Run& run, const island::Worker& worker, FileArchive& archive) {
    LiveLine::clear();
    const search::Population& population = worker.population();
    if (worker.exit_reason() == island::ExitReason::complete) {
        const bool is_published = publish(run, archive.facts().run, population);
        remove_leftovers(run, population);
        const bool is_written =
            write_last_archive(archive, population, is_published ? RunState::complete : RunState::stopped);
        return is_published && is_written ? island::ExitReason::complete : island::ExitReason::storage;
    }
    const bool gave_up = worker.exit_reason() == island::ExitReason::gave_up;
    if (!write_last_archive(archive, population, gave_up ? RunState::gave_up : RunState::stopped)) {
        return island::ExitReason::storage;
    }
    static_cast<void>(publish(run, archive.facts().run, population));
    write_summary(run.directory, run.config, population, archive.facts(), TestResults::read);
    return worker.exit_reason();
}

void print_summary(const Run& run, const island::Worker& worker, const FileArchive& archive,
                   island::ExitReason reason) {
    if (run.options.is_trial) {
        return;
    }
    const search::Population& population = worker.population();
    const std::string where = run.directory.root().string();
    const std::size_t unfinished = population.size() - population.finished();
    if (reason == island::ExitReason::storage) {
        std::error_code none;
        const bool is_gone =
            std::filesystem::status(run.directory.root(), none).type() == std::filesystem::file_type::not_found;
        spdlog::warn(
            "stopped: files fail (see above){}. {}, {} unfinished",
            is_gone ? fmt::format("; {} is not there any more, nor are its results", where)
                    : fmt::format(", but no result of {} is lost: mend that, then start it again to resume", where),
            search::Outcomes(population).counts(), unfinished);
    } else {
        const bool is_in_vain = !search::has_result(population) && (reason == island::ExitReason::complete ||
                                                                    search::Outcomes(population).without_result() > 0);
        spdlog::log(is_in_vain ? spdlog::level::err : spdlog::level::info, "{}", closing_line(worker, reason));
    }
    if (has_no_winner(population, run.config.final_choice)) {
        spdlog::warn("the final choice has no winner, as all its repeats failed: the best is that of the search");
    }
    if (run.config.trains()) {
        tell_of_best(population, archive.facts(), run.config);
    }
    const config::Config& config = run.config;
    const std::string& fitness = config.measure.name;
    if (search::has_result(population)) {
        fmt::print("\n{}{}{}", report::best_table(config.space, population, archive.facts(), {}, fitness),
                   report::front_table(config.space, population, config.costs, fitness),
                   report::final_table(config.space, population, config.final_choice, fitness));
    }
    fmt::print("\n{}", summary_of(run.directory, config, population, archive.facts()));
}

}  // namespace

FileArchive::Written publisher(const Run& run, std::uint64_t number) {
    return [&run, number, last = std::optional<search::Id>(), has_written = false](
               const search::Population& population, const store::ArchiveFacts& facts) mutable {
        const search::Individual* best =
            run.config.trains() ? search::chosen(population, run.config.final_choice) : nullptr;
        try {
            // An earlier start or, at the end of this start, publish_best() may have written the file.
            const bool may_be_there = (!last && facts.restarts > 0) || facts.state != RunState::running;
            if (best != nullptr && best->id != last && may_be_there && is_published(run.directory, number, *best)) {
                last = best->id;
            }
            if (best != nullptr && best->id != last && publish_weights(run.directory, number, best)) {
                last = best->id;
                has_written = true;
            }
        } catch (const std::exception& error) {  // the next write of the archive tries again
            spdlog::warn("models/best.h5 could not be written: {}", error.what());
        }
        // publish_weights() writes no results. publish_best() adds them before the last archive.
        const bool has_results = !has_written || facts.state != RunState::running;
        write_summary(run.directory, run.config, population, facts,
                      has_results ? TestResults::read : TestResults::none);
    };
}

void close_urgently(const island::Worker& worker, FileArchive& archive) {
    LiveLine::clear();
    archive.event({unix_seconds(), 0, "stop", "a signal asked to stop at once"});
    archive.set_state(RunState::terminated);
    archive.write(worker.population());
    spdlog::info("{}", closing_line(worker, worker.exit_reason()));
}

int close_orderly(const Run& run, const island::Worker& worker, FileJournal& journal, FileArchive* archive) {
    island::ExitReason reason = worker.exit_reason();
    bool is_written = false;
    if (archive != nullptr) {
        reason = close_run(run, worker, *archive);
        is_written = archive->is_current();
        print_summary(run, worker, *archive, reason);
    }
    if (from_message<bool>(comm::broadcast(run.leaders.get(), to_message(is_written)))) {
        journal.forget_all();
    }
    if (reason != island::ExitReason::complete) {
        return exit_stopped;
    }
    return search::has_result(worker.population()) ? exit_done : exit_fault;
}

}  // namespace finch::run
