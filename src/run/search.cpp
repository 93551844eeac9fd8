// The search phase of a start, and the end of the start.
#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/base/replace.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/cluster/time_limit.hpp"
#include "finch/comm/mpi_mailbox.hpp"
#include "finch/comm/phase.hpp"
#include "finch/evaluate/cnn_evaluator.hpp"
#include "finch/evaluate/command_evaluator.hpp"
#include "finch/run/closing.hpp"
#include "finch/run/given.hpp"
#include "finch/run/progress.hpp"
#include "finch/run/reuse.hpp"
#include "finch/run/run.hpp"
#include "finch/run/startup.hpp"
#include "finch/run/storage.hpp"
#include "finch/train/profile.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace finch::run {
namespace {

/// Returns the profile of finch train --profile; nothing if the options do not request it.
std::optional<train::Profile> begin_profile(const RunOptions& options) {
    return options.profile ? std::make_optional<train::Profile>() : std::nullopt;
}

/// Leader only. Writes the measured profile to the log and to profile.json.
void tell_profile(const Run& run, const train::ProfileReport& report) {
    if (report.all.training_samples == 0) {
        spdlog::info("--profile: nothing was trained in this start");
        return;
    }
    for (const std::string& line : train::table_text(report)) {
        spdlog::info("{}", line);
    }
    const std::string json = train::json_text(report);
    try {
        replace_file(run.directory.profile(), {std::as_bytes(std::span(json))}, {Predecessor::drop});
    } catch (const StorageError& error) {
        spdlog::warn("--profile: {}", error.what());
    }
}

island::WorkerOptions worker_options(const Run& run, const OpenedRun& opened, const island::IslandMap& islands) {
    island::WorkerOptions options;
    options.run = opened.before.run;
    options.seed = run.config.seed;
    options.restart = opened.before.restart;
    options.self = run.place().worker;
    options.islands = &islands;
    options.earlier = opened.before.earlier;
    const auto self = static_cast<std::size_t>(options.self);
    options.bred_before = self < opened.before.bred.size() ? opened.before.bred[self] : 0;
    options.hours_before = opened.before.hours;
    options.node_hours_before = opened.before.node_hours;
    options.nodes = run.placement.nodes();
    options.one_at_a_time = opened.before.one_at_a_time;
    options.budget = run.config.budget;
    options.final_choice = run.config.final_choice;
    options.duplicates = run.config.duplicates;
    options.other_results = opened.other_results.all().empty() ? nullptr : &opened.other_results;
    options.retries = run.config.retries;
    options.give_up_after = run.config.give_up_after;
    if (options.give_up_after == 0) {
        options.give_up_after = std::max<std::int64_t>(8, 2 * std::int64_t{islands.workers()});
    }
    options.inherit = run.config.inherit;
    options.exchange = run.config.exchange;
    options.exchange.node_of_island = cluster::node_of_island(run.placement.layout);
    if (!run.options.genes) {
        options.initial_design = run.config.initial_design(run.config.first_points());
        options.initial_points_left = opened.before.initial_points_left;
    }
    options.archive_seconds = run.config.checkpoint.archive_seconds;
    options.training_seconds = run.config.checkpoint.training_seconds;
    options.node = run.place().node;
    options.device = run.device.device->name();
    options.ranks = run.group.size();
    options.threads = run.placement.threads;
    options.timeout_seconds = run.config.workers.timeout_seconds;
    for (const int leader : run.placement.layout.leaders) {
        const cluster::Place& place = run.placement.mine(leader);
        options.leader_names.push_back(fmt::format("rank {} on {}", leader, place.node));
    }
    return options;
}

/// The state of the search at the beginning of this start.
SearchBegin search_begin(const Run& run, const OpenedRun& opened) {
    return {.budget = run.config.budget,
            .workforce = {.workers = static_cast<int>(run.placement.layout.leaders.size()),
                          .slots = run.config.workers.slots,
                          .nodes = run.placement.nodes()},
            .restart = opened.before.restart,
            .hours = opened.before.hours,
            .node_hours = opened.before.node_hours,
            .unix_seconds = unix_seconds()};
}

/// Collective over the world. Returns this rank's evaluator for the objective. `number`: of the run.
std::unique_ptr<evaluate::GroupEvaluator> make_evaluator(Run& run, std::uint64_t number) {
    if (std::holds_alternative<config::FunctionObjective>(run.config.objective)) {
        return evaluate::make_function_evaluator(run.config, run.group);
    }
    if (run.prepared) {
        run.group.sleep_while_waiting();
        return make_command_evaluator(run.config, *run.prepared, run.group, run.launcher, run.placement,
                                      run.session.world_rank(), run.directory, number, run.meter.get());
    }
    return std::make_unique<evaluate::CnnEvaluator>(
        run.config, run.group, run.datasets(), *run.device.device, run.device.communicator,
        evaluate::WorkerRun{run.directory, number, run.place().worker}, run.meter.get(), begin_profile(run.options));
}

std::unique_ptr<search::Propagator> make_propagator(const Run& run, int island) {
    return run.options.genes
               ? fixed_genome_propagator(given_genome(run.config.space, *run.options.genes))
               : search::make_propagator(run.config.propagator_of(island), run.config.space, run.config.seed);
}

/// Ends this process immediately without a message to other processes: its files are closed, and a peer may be dead.
[[noreturn]] void leave_at_once(int code) {
    std::fflush(nullptr);
    std::_Exit(code);
}

/// Collective over the world, except after SIGTERM. Returns the `code` of world rank 0.
int end_together(const Run& run, int code) {
    // After SIGTERM a dismissed follower exits like its leader, without a message to other workers.
    if (cluster::stop_request() == StopRequest::urgent) {
        // A launcher kills all ranks when the first rank exits, so each rank waits for ranks that are still saving.
        comm::wait_for_all(MPI_COMM_WORLD, cluster::seconds_left_to_stop() - 2);
        leave_at_once(exit_stopped);
    }
    cluster::ignore_signals();
    run.begin(Phase::end_of_run);
    return from_message<int>(comm::broadcast(MPI_COMM_WORLD, to_message(code)));
}

}  // namespace

/// Follower only. Executes the leader's orders.
void Run::follow() {
    const auto evaluator = make_evaluator(*this, opened.before.run);
    end_phases();
    evaluator->follow();
}

/// Leader only. Runs the search. Collective over the leaders at the beginning and at an orderly end. Returns the exit
/// code on world rank 0.
int Run::lead() {
    OpenedRun begun = std::move(opened);  // the lock must be released here: the process may exit immediately
    share_results(leaders.get(), begun.other_results);
    FileJournal journal(directory.journal(place().worker), begun.before.run, config.checkpoint.sync_seconds);
    std::optional<FileArchive> archive;
    if (is_world_rank_0()) {
        archive.emplace(directory, config.space, begun.facts, *begun.lock, publisher(*this, begun.before.run));
    }
    const auto mailbox = comm::make_mpi_mailbox(leaders.get());
    const auto evaluator = make_evaluator(*this, begun.before.run);
    const island::IslandMap islands(placement.layout.island_of_worker, placement.layout.islands);
    const auto propagator = make_propagator(*this, islands.island_of(place().worker));
    // In a trial (finch plan --try), try_plan() prints the individual.
    Progress progress(config, is_world_rank_0() && !options.is_trial, begun.population, search_begin(*this, begun),
                      *evaluator);
    island::Worker worker(worker_options(*this, begun, islands), std::move(begun.population), *propagator, *evaluator,
                          journal, *mailbox, archive ? &*archive : nullptr, progress,
                          {unix_seconds, steady_seconds, cluster::stop_request, slurm.end_time.value_or(0),
                           cluster::request_orderly_stop, cluster::extended_end_time});
    end_phases();
    const island::ExitReason reason = worker.run();
    begin(Phase::end_of_search);
    progress.report_failures();
    if (reason == island::ExitReason::urgent) {
        if (archive) {
            close_urgently(worker, *archive);
        }
        evaluator->dismiss();
        if (is_world_rank_0() && options.is_trial) {
            std::error_code none;
            std::filesystem::remove_all(directory.root(), none);  // no destructor runs before the process ends
        }
        return exit_stopped;
    }
    if (options.profile) {
        tell_profile(*this, evaluator->report());
    }
    evaluator->dismiss();
    return close_orderly(*this, worker, journal, archive ? &*archive : nullptr);
}

int Run::search() {
    begin(Phase::second_roll_call);
    comm::check_start(MPI_COMM_WORLD, placement.node_of_rank);
    begin(Phase::handing_out_results);
    if (!group.is_leader()) {
        follow();
        return end_together(*this, exit_done);
    }
    return end_together(*this, lead());
}

}  // namespace finch::run
