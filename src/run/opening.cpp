#include "finch/run/opening.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/replace.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/end_notes.hpp"
#include "finch/data/labels.hpp"
#include "finch/evaluate/kept_files.hpp"
#include "finch/island/initial_points.hpp"
#include "finch/run/given.hpp"
#include "finch/run/publish.hpp"
#include "finch/run/reuse.hpp"
#include "finch/search/attempts.hpp"
#include "finch/search/outcomes.hpp"
#include "finch/store/model_file.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <span>

namespace finch::run {
namespace {

std::uint64_t new_run_number() {
    std::random_device entropy;
    return (std::uint64_t{entropy()} << 32) | entropy();
}

void write_config(const store::RunDirectory& directory, const config::Config& config) {
    const std::string text = config.text();
    replace_file(directory.config(), {std::as_bytes(std::span(text))}, {Predecessor::drop});
}

/// Renames a published model that was left by an earlier run without an archive. The new run has no model yet, and the
/// old model must not be mistaken for it.
void set_stale_model_aside(const store::RunDirectory& directory) {
    const std::filesystem::path model = directory.best_model();
    std::error_code none;
    if (std::filesystem::exists(model, none)) {
        const std::filesystem::path aside = model.parent_path() / "best-of-an-earlier-run.h5";
        std::filesystem::rename(model, aside, none);
        spdlog::warn("{} is of an earlier run, of which there is no archive: it is now {}", model.string(),
                     aside.filename().string());
    }
}

/// Removes the journals of workers that this start does not have. The archive and the previous archive contain the
/// records of these journals.
void remove_other_journals(const store::RunDirectory& directory, int workers) {
    std::error_code none;
    for (int worker = workers; std::filesystem::exists(directory.journal(worker), none); ++worker) {
        std::filesystem::remove(directory.journal(worker), none);
    }
}

/// Returns how many individuals each worker has bred in all starts of the run.
std::vector<std::int32_t> bred_by_workers(const search::Population& population) {
    std::vector<std::int32_t> bred;
    for (const auto& [id, individual] : population.individuals()) {
        bred.resize(std::max<std::size_t>(bred.size(), id.worker() + 1));
        bred[id.worker()] += individual.is_repeat() || individual.is_reused() ? 0 : 1;
    }
    return bred;
}

/// Examines the end of the last start. If the start broke off, charges deaths to the individuals that were in training
/// (search::charge_deaths()) and logs the charged individuals. Returns how many starts in a row have now ended without
/// an end note and without progress.
int look_at_last_end(search::Population& population, const store::ArchiveFacts& facts,
                     const store::RunDirectory& directory) {
    if ((facts.state != RunState::running && facts.state != RunState::terminated) || facts.starts.empty()) {
        return 0;
    }
    search::EndNotes notes;
    for (const cluster::EndNote& note : cluster::read_end_notes(directory.end_notes(), facts.restarts)) {
        search::WorkerEnd& end = notes[note.worker];
        ++(note.kind == cluster::ExitCause::own_fault ? end.own_fault : end.external);
    }
    const store::Start& last = facts.starts.back();
    const bool was_in_vain = !(search::progress_of(population) > last.progress + 1e-9);
    const bool one_at_a_time = last.silent_ends >= search::most_silent_ends;
    for (const search::Individual& charged :
         search::charge_deaths(population, facts.restarts, notes, one_at_a_time, unix_seconds())) {
        spdlog::warn("individual {} was in training on worker {} when that worker's process died in start {}: {}",
                     to_text(charged.id), charged.attempt.worker, charged.attempt.restart + 1,
                     charged.finished_training() ? "given up, " + charged.problem : "it is tried once more, alone");
        population.merge(charged);
    }
    return !notes.empty() || !was_in_vain ? 0 : one_at_a_time ? last.silent_ends : last.silent_ends + 1;
}

/// Warns if training.batch_size_per_rank is set and the number of ranks per worker has changed. With another global
/// batch size, losses within one search are not comparable.
void warn_of_other_batches(const search::Population& population, const config::Config& config) {
    if (!config.trains()) {
        return;
    }
    const auto& all = population.individuals();
    const auto other = std::find_if(all.begin(), all.end(), [&config](const auto& entry) {
        return entry.second.ranks > 0 && entry.second.ranks != config.workers.ranks;
    });
    if (other == all.end()) {
        return;
    }
    const search::Individual& individual = other->second;
    if (config.recipe(individual.genome, individual.id.value).training.batch_size_per_rank) {
        spdlog::warn(
            "training.batch_size_per_rank with other ranks: {} was trained by {}, a worker now has {}, so the same "
            "genes train with another global batch (column batch_size), and their results are not comparable",
            to_text(individual.id), individual.ranks, config.workers.ranks);
    }
}

/// Merges the files of earlier starts into `run`.
void resume(OpenedRun& run, store::Recovered recovered, const store::RunDirectory& directory,
            const config::Config& config, const std::string& data_fingerprint) {
    check_same_search(config, recovered.facts, directory, data_fingerprint);
    for (const std::string& problem : recovered.problems) {
        spdlog::warn("{}", problem);
    }
    recovered.adopt(config.space);
    recovered.move_into(run.population);
    warn_of_other_batches(run.population, config);
    const std::string before = recovered.facts.config;
    const std::map<std::uint32_t, double> lasted = store::seconds_of_starts(recovered.facts);
    for (store::Start& start : recovered.facts.starts) {
        start.seconds = lasted.at(start.restart);
        run.before.earlier.push_back({start.restart, start.workers});
        run.before.hours += start.seconds / 3600;
        run.before.node_hours += start.nodes * start.seconds / 3600;
    }
    const int silent_ends = look_at_last_end(run.population, recovered.facts, directory);
    run.before.one_at_a_time = silent_ends >= search::most_silent_ends;
    run.facts = std::move(recovered.facts);
    ++run.facts.restarts;
    run.facts.starts.push_back({.restart = run.facts.restarts, .silent_ends = silent_ends});
    run.greeting = fmt::format("resuming {}: {}, {} unfinished, start number {}", directory.root().string(),
                               search::Outcomes(run.population).counts(),
                               run.population.size() - run.population.finished(), run.facts.restarts + 1);
    const std::string changed = before == config.text() ? "" : config::difference(before, config.text());
    if (!changed.empty()) {
        run.greeting += "; changed since: " + changed;
    }
}

void take_other_runs(OpenedRun& run, OtherRuns other) {
    for (const std::string& note : other.notes) {
        spdlog::info("{}", note);
        run.facts.events.push_back({unix_seconds(), 0, "reuse", note});
    }
    add_runs(run.facts.reused_runs, other.runs);
    run.other_results = std::move(other.results);
    run.other_results.forget(run.facts.run);  // results that another run took from this run
}

/// Returns the log file of this start; empty if it is unknown. Under srun standard output is a pipe, so the job script
/// sets FINCH_LOG to the file name.
std::string log_file(const LogOptions& options) {
    std::error_code none;
    if (!options.path.empty()) {
        return std::filesystem::absolute(options.path, none).string();
    }
    const std::filesystem::path output = "/proc/self/fd/1";
    if (std::filesystem::is_regular_file(output, none)) {
        return std::filesystem::read_symlink(output, none).string();
    }
    return cluster::Environment::of_this_process().text("FINCH_LOG").value_or("");
}

void name_job(store::Start& start, const cluster::Slurm& slurm, const LogOptions& log) {
    start.job = slurm.job_id.value_or("");
    start.cluster = slurm.cluster.value_or("");
    start.node_list = slurm.node_list.value_or("");
    start.log = printable_line(log_file(log));
    start.deadline = slurm.end_time.value_or(0);
}

/// Implements --fresh: renames the existing run to make room for a new run.
void set_aside(const store::RunDirectory& directory, const cluster::Slurm& slurm) {
    const store::RunLock lock(directory, slurm.job_id.value_or(""));  // no other process uses the run
    spdlog::info("--fresh: the earlier run is now {}", directory.move_aside().string());
}

}  // namespace

void check_same_search(const config::Config& config, const store::ArchiveFacts& facts,
                       const store::RunDirectory& directory, const std::optional<std::string>& data_fingerprint) {
    const config::Config before = config::parse(facts.config, (directory.archive() / "config").string());
    const std::string changes = config::difference(before.fixed_text(), config.fixed_text());
    const std::string advice =
        "Only budget, final, propagator, islands, duplicates, reuse, retries, give_up_after, exchange, workers, "
        "checkpoint, log and where the data lie (data.path, memory, prefetch) may change between two starts of a run. "
        "Go on with the old values, begin another run with --run DIR, or set the old one aside with --fresh";
    if (!changes.empty()) {
        throw ConfigError(fmt::format("{}: this run was made with another configuration:\n{}\n{}",
                                      directory.root().string(), changes, advice));
    }
    if (data_fingerprint && facts.data_fingerprint != *data_fingerprint) {
        throw ConfigError(fmt::format("{}: this run was made with other data (checksum {} then, {} now). {}",
                                      directory.root().string(), facts.data_fingerprint, *data_fingerprint, advice));
    }
}

OpenedRun open_run(const store::RunDirectory& directory, const config::Config& config, const RunOptions& options,
                   const cluster::Slurm& slurm, const std::string& data_fingerprint, int workers, int islands,
                   int nodes) {
    const bool begins_anew = options.fresh && slurm.restart_count == 0;
    OtherRuns other = read_other_runs(config, directory, !begins_anew, data_fingerprint);
    OpenedRun run;
    run.population = search::Population(config.exchange.kind, islands, config.costs);
    if (begins_anew && directory.holds_a_run()) {
        set_aside(directory, slurm);
    }
    directory.create(workers, slurm.restart_count > 0);
    run.lock = std::make_unique<store::RunLock>(directory, slurm.job_id.value_or(""));
    if (auto recovered = store::recover(directory, OnDamage::set_aside, store::Curves::leave)) {
        resume(run, std::move(*recovered), directory, config, data_fingerprint);
        if (options.genes) {
            check_same_genes(config.space, given_genome(config.space, *options.genes), run.population,
                             directory.root().string());
        }
    } else {
        set_stale_model_aside(directory);
        run.facts.run = new_run_number();
        run.facts.starts.emplace_back();
        run.greeting = fmt::format("a new run in {}", directory.root().string());
    }
    run.facts.seed = config.seed;
    run.facts.config = config.text();
    run.facts.data_fingerprint = data_fingerprint;
    run.facts.workers = workers;
    run.facts.islands = islands;
    store::Start& start = run.facts.starts.back();
    start.workers = workers;
    start.nodes = nodes;
    start.began = unix_seconds();
    start.progress = search::progress_of(run.population);
    name_job(start, slurm, config.log);
    run.facts.state = RunState::running;
    run.facts.budget_evaluations = config.budget.evaluations.value_or(-1);
    run.facts.budget_epochs = config.budget.epochs.value_or(-1);
    run.facts.events.push_back({unix_seconds(), 0, run.facts.restarts == 0 ? "start" : "restart", run.greeting});
    if (const std::string populations = config.populations_text(); !populations.empty()) {
        spdlog::info("{}", populations);
        run.facts.events.push_back({unix_seconds(), 0, "population", populations});
    }
    take_other_runs(run, std::move(other));
    run.before.run = run.facts.run;
    run.before.restart = run.facts.restarts;
    run.before.bred = bred_by_workers(run.population);
    if (!options.genes) {
        run.before.initial_points_left = island::initial_points_left(
            run.population, run.before.earlier, config.initial_design(config.first_points()).initial_points());
    }
    return run;
}

void check_class_names(const OpenedRun& run, const store::RunDirectory& directory,
                       const std::vector<std::string>& names) {
    std::vector<std::filesystem::path> paths{directory.best_model()};
    for (const island::EarlierStart& start : run.before.earlier) {
        for (int worker = 0; worker < start.workers; ++worker) {
            paths.push_back(directory.worker_best(worker));
        }
    }
    for (const std::filesystem::path& path : paths) {
        std::vector<std::string> problems;
        const auto model = names.empty() ? std::nullopt : store::read_model(path, problems, OnDamage::leave);
        if (model && model->run == run.facts.run) {
            data::check_trained_names(model->classes, names);
            return;
        }
    }
}

void record_start(OpenedRun& run, const store::RunDirectory& directory, const config::Config& config) {
    // Reading and distributing the run took some time: another job may have taken the lock in the meantime.
    run.lock->renew();
    const auto heartbeat = [&] { run.lock->heartbeat(); };
    // population.h5.previous must be complete, too: the journals start empty, so they could not complete an older
    // archive.
    store::write_archive(directory.archive(), config.space, run.population, run.facts, heartbeat);
    copy_to_previous(directory.archive());
    heartbeat();
    for (const auto& [id, individual] : run.population.individuals()) {
        if (!individual.curve.empty()) {
            run.population.forget_curve(id);
        }
    }
    if (run.facts.restarts > 0) {
        remove_other_journals(directory, run.facts.workers);
        remove_finished_trainings(directory, run.population);
        evaluate::remove_unused_weights(directory, run.population);
        evaluate::remove_unused_rungs(directory, run.population, config.inherit.value_or(search::InheritOptions{}));
    }
    write_config(directory, config);
}

}  // namespace finch::run
