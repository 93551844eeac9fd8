#include "finch/app/run_search.hpp"

#include "finch/app/closing.hpp"
#include "finch/app/given.hpp"
#include "finch/app/profile.hpp"
#include "finch/app/progress.hpp"
#include "finch/app/reuse.hpp"
#include "finch/app/startup.hpp"
#include "finch/app/storage.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/message.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/comm/mpi_mailbox.hpp"
#include "finch/comm/phase.hpp"
#include "finch/evaluate/cnn_evaluator.hpp"
#include "finch/evaluate/command_evaluator.hpp"
#include "finch/evaluate/function_evaluator.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

namespace finch::app {
namespace {

island::WorkerOptions worker_options(const RunContext& context, const OpenedRun& run,
                                     const island::IslandMap& islands) {
    island::WorkerOptions options;
    options.run = run.before.run;
    options.seed = context.config.seed;
    options.restart = run.before.restart;
    options.self = context.place().worker;
    options.islands = &islands;
    options.earlier = run.before.earlier;
    const auto self = static_cast<std::size_t>(options.self);
    options.bred_before = self < run.before.bred.size() ? run.before.bred[self] : 0;
    options.hours_before = run.before.hours;
    options.node_hours_before = run.before.node_hours;
    options.nodes = context.placement.nodes();
    options.one_at_a_time = run.before.one_at_a_time;
    options.budget = context.config.budget;
    options.final_choice = context.config.final_choice;
    options.duplicates = context.config.duplicates;
    options.other_results = run.other_results.all().empty() ? nullptr : &run.other_results;
    options.retries = context.config.retries;
    options.give_up_after = context.config.give_up_after;
    if (options.give_up_after == 0) {
        options.give_up_after = std::max<std::int64_t>(8, 2 * std::int64_t{islands.workers()});
    }
    options.exchange = context.config.exchange;
    options.exchange.node_of_island = cluster::node_of_island(context.placement.layout);
    if (!context.options.genes) {
        const config::Config::Needs needs = context.config.needs();
        options.beginning = context.config.beginning(needs.first_points);
        options.bred_from = needs.population;
        options.openings_left = run.before.openings_left;
    }
    options.archive_seconds = context.config.checkpoint.archive_seconds;
    options.training_seconds = context.config.checkpoint.training_seconds;
    options.node = context.place().node;
    options.device = context.device.name();
    options.ranks = context.group.size();
    options.threads = context.placement.threads;
    options.timeout_seconds = context.config.workers.timeout_seconds;
    for (const int leader : context.placement.layout.leaders) {
        const cluster::Place& place = context.placement.mine(leader);
        options.leader_names.push_back(fmt::format("rank {} on {}", leader, place.node));
    }
    return options;
}

/// Followers: execute the leader's orders.
void follow(const RunContext& context) {
    end_phases();
    if (context.programs != nullptr) {
        evaluate::follow(context.group, [&](const evaluate::Order& order) { context.programs->obey(order); });
    } else if (context.config.trains()) {
        std::optional<train::Profile> profile = begin_profile(context.options);
        train::Profile* const measuring = profile ? &*profile : nullptr;
        evaluate::Slots slots(context.config, context.datasets, context.device, context.group, context.communicator,
                              measuring, context.meter);
        evaluate::follow(
            context.group, [&](const evaluate::Order& order) { slots.obey(order); }, measuring);
    } else {
        evaluate::follow(context.group,
                         [&](const evaluate::Order& order) { evaluate::obey_alone(context.group, order); });
    }
}

/// `population`: what the leader knows, once it points at something.
std::unique_ptr<island::Evaluator> make_evaluator(const RunContext& context, std::uint64_t run, evaluate::Slots& slots,
                                                  const search::Population* const& population) {
    if (std::holds_alternative<config::FunctionObjective>(context.config.objective)) {
        return std::make_unique<evaluate::FunctionEvaluator>(context.config, context.group);
    }
    if (context.programs != nullptr) {
        return std::make_unique<evaluate::CommandEvaluator>(
            context.config, *context.programs, context.group,
            [&population]() -> const search::Population& { return *population; }, cluster::seconds_left_to_stop);
    }
    const evaluate::CnnEvaluator::Place place{context.place().worker, context.placement.threads, context.place().node,
                                              run};
    auto evaluator = std::make_unique<evaluate::CnnEvaluator>(
        context.config, slots, context.group, context.directory, place, context.device.name(), [&population] {
            const search::Individual* best = population->best_trained();
            return best != nullptr ? std::optional(search::standing(*best)) : std::nullopt;
        });
    evaluator->set_population([&population]() -> const search::Population& { return *population; });
    const data::Dataset& images = context.datasets.training;
    evaluator->set_sample_shape({images.height, images.width, images.channels}, images.outputs());
    return evaluator;
}

/// Leaders: the search itself. Collective over the leaders at its beginning and its orderly end. Returns the exit code,
/// on world rank 0.
int lead(const RunContext& context, OpenedRun opened) {
    const bool is_zero = context.session.world_rank() == 0;
    OpenedRun run = std::move(opened);  // its lock is given back here: the process may be left at once
    share_results(context.leaders.get(), run.other_results);
    FileJournal journal(context.directory.journal(context.place().worker), run.before.run);
    std::optional<FileArchive> archive;
    if (is_zero) {
        archive.emplace(context.directory, context.config.space, run.facts, *run.lock,
                        publisher(context, run.before.run));
    }
    const auto mailbox = comm::make_mpi_mailbox(context.leaders.get());
    std::optional<train::Profile> profile = begin_profile(context.options);
    std::optional<evaluate::Slots> slots;
    slots.emplace(context.config, context.datasets, context.device, context.group, context.communicator,
                  profile ? &*profile : nullptr, context.meter);
    const search::Population* population = nullptr;
    const auto evaluator = make_evaluator(context, run.before.run, *slots, population);
    const island::IslandMap islands(context.placement.layout.island_of_worker, context.placement.layout.islands);
    const auto propagator =
        context.options.genes
            ? fixed_genome_propagator(given_genome(context.config.space, *context.options.genes))
            : search::make_propagator(context.config.propagator_of(islands.island_of(context.place().worker)),
                                      context.config.space, context.config.seed);
    // A trial prints its individual itself.
    Progress progress(context.config, is_zero && !context.options.is_trial, run.population, run.before.hours);
    island::Worker worker(worker_options(context, run, islands), std::move(run.population), *propagator, *evaluator,
                          journal, *mailbox, is_zero ? &*archive : nullptr, progress,
                          {unix_seconds, steady_seconds, cluster::stop_request, context.slurm.end_time.value_or(0),
                           cluster::request_orderly_stop});
    population = &worker.population();
    end_phases();
    const island::ExitReason reason = worker.run();
    begin_phase(context.session, "the end of the search", seconds_of_files());
    progress.report_failures();
    if (reason == island::ExitReason::urgent) {
        if (archive) {
            close_urgently(context, worker, *archive);
        }
        evaluator->dismiss();
        if (is_zero && context.options.is_trial) {
            std::error_code none;
            std::filesystem::remove_all(context.directory.root(), none);  // nothing else runs before the process ends
        }
        return exit_stopped;
    }
    if (profile) {
        tell_profile(context, *slots);
    }
    evaluator->dismiss();
    return close_orderly(context, worker, journal, archive ? &*archive : nullptr);
}

/// Ends this process at once, without a word to any other: its files are closed, and a peer may be dead.
[[noreturn]] void leave_at_once(int code) {
    std::fflush(nullptr);
    std::_Exit(code);
}

/// Collective over the world, but after TERM. Returns the `code` of world rank 0.
int end_together(const comm::Session& session, int code) {
    // A follower that was dismissed after TERM leaves as its leader does, without a word to other workers.
    if (cluster::stop_request() == StopRequest::urgent) {
        // A launcher ends the others when the first one leaves, so each waits for those that still save.
        comm::wait_for_all(MPI_COMM_WORLD, cluster::seconds_left_to_stop() - 2);
        leave_at_once(exit_stopped);
    }
    cluster::ignore_signals();
    begin_phase(session, "the end of the run", seconds_of_files());
    return from_message<int>(comm::broadcast(MPI_COMM_WORLD, to_message(code)));
}

}  // namespace

int run_search(const RunContext& context, OpenedRun opened, double timeout) {
    begin_phase(context.session, "the roll call before the search", timeout);
    comm::check_start(MPI_COMM_WORLD, context.placement.node_of_rank);
    begin_phase(context.session, "handing out the results of other runs", seconds_of_sharing());
    if (!context.group.is_leader()) {
        follow(context);
        return end_together(context.session, exit_done);
    }
    return end_together(context.session, lead(context, std::move(opened)));
}

}  // namespace finch::app
