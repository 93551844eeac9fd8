#include "finch/app/evolve.hpp"

#include "finch/app/checks.hpp"
#include "finch/app/closing.hpp"
#include "finch/app/devices.hpp"
#include "finch/app/first_guesses.hpp"
#include "finch/app/given.hpp"
#include "finch/app/load_data.hpp"
#include "finch/app/meters.hpp"
#include "finch/app/on_every_rank.hpp"
#include "finch/app/opening.hpp"
#include "finch/app/profile.hpp"
#include "finch/app/programs.hpp"
#include "finch/app/progress.hpp"
#include "finch/app/reuse.hpp"
#include "finch/app/run_context.hpp"
#include "finch/app/share_run.hpp"
#include "finch/app/startup.hpp"
#include "finch/app/storage.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/cluster/end_notes.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/comm/mpi_mailbox.hpp"
#include "finch/comm/phase.hpp"
#include "finch/evaluate/cnn_evaluator.hpp"
#include "finch/evaluate/command_evaluator.hpp"
#include "finch/evaluate/function_evaluator.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

namespace finch::app {
namespace {

/// Others wait as long for what one rank does with files, at the start and at the end: half an hour, unless the user
/// has set FINCH_START_SECONDS.
double seconds_of_files() {
    return 15 * start_seconds();
}
/// A million individuals take some seconds.
double seconds_of_sharing() {
    return 5 * start_seconds();
}

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

/// Followers: no more than obedience.
void follow(const RunContext& context) {
    end_phases();
    if (context.programs != nullptr) {
        context.programs->follow();
    } else if (context.config.trains()) {
        std::optional<train::Profile> profile = begin_profile(context.options);
        evaluate::Slots(context.config, context.datasets, context.device, context.group, context.communicator,
                        profile ? &*profile : nullptr, context.meter)
            .follow();
    } else {
        evaluate::follow_without_trainings(context.group);
    }
}

/// `population`: what the leader knows, once it points at something.
std::unique_ptr<island::Evaluator> make_evaluator(const RunContext& context, std::uint64_t run, evaluate::Slots& slots,
                                                  const search::Population* const& population) {
    if (const auto* function = std::get_if<config::FunctionObjective>(&context.config.objective)) {
        return std::make_unique<evaluate::FunctionEvaluator>(*function, context.config.seed,
                                                             context.config.workers.slots, context.group);
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

/// Leaders: the search itself. Collective over the leaders at its beginning and its orderly end.
island::ExitReason lead(const RunContext& context, OpenedRun opened) {
    const bool is_zero = context.session.world_rank() == 0;
    OpenedRun run = share_run(context.leaders.get(), std::move(opened), context.placement.layout.island_of_worker,
                              context.config.exchange.kind, context.placement.layout.islands, context.config.costs);
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
    Progress progress(context.config, is_zero, run.population.evaluations(), run.before.hours);
    island::Worker worker(worker_options(context, run, islands), std::move(run.population), *propagator, *evaluator,
                          journal, *mailbox, is_zero ? &*archive : nullptr, progress,
                          {unix_seconds, steady_seconds, cluster::stop_request, context.slurm.end_time.value_or(0),
                           cluster::request_orderly_stop});
    population = &worker.population();
    end_phases();
    const island::ExitReason reason = worker.run();
    begin_phase(context.session, "the end of the search", seconds_of_files());
    if (reason == island::ExitReason::urgent) {
        if (archive) {
            close_urgently(context, worker, *archive);
        }
        evaluator->dismiss();
        return reason;
    }
    if (profile) {
        tell_profile(context, *slots);
    }
    evaluator->dismiss();
    return close_orderly(context, worker, journal, archive ? &*archive : nullptr);
}

/// Throws ConfigError where srun and MPI do not speak with each other.
cluster::Slurm read_slurm(const comm::Session& session) {
    cluster::Slurm slurm = cluster::Slurm::read(cluster::Environment::of_this_process());
    if (const auto problem = cluster::launch_problem(slurm, session.world_size())) {
        throw ConfigError(*problem);
    }
    return slurm;
}

/// Collective over the world. The same configuration on every rank, read by world rank 0 alone, which has `notes` on
/// it.
config::Config load_everywhere(const RunOptions& options, const cluster::Slurm& slurm,
                               std::vector<std::string>& notes) {
    const std::string text = on_rank_zero(MPI_COMM_WORLD, [&] {
        config::Config config = config::load(options.config, options.settings);
        if (!options.genes) {
            config = with_first_guesses(std::move(config), options, slurm.restart_count, notes);
        }
        return config.text();
    });
    return config::parse(text, options.config.string());
}

/// Collective over the world. Nothing, on all ranks, where files fail: the run stops, to be resumed.
std::optional<LoadedData> load_data(const comm::Session& session, const config::Config& config) try {
    if (!config.trains()) {
        return LoadedData{};
    }
    LoadedData loaded = load_on_each_node(data_options(config), config.seed);
    static_cast<void>(on_rank_zero(MPI_COMM_WORLD, [&] {
        check_data(config, loaded.sets);
        return std::string();
    }));
    check_first_weights(config, loaded.sets);
    return loaded;
} catch (const StorageError& error) {
    if (session.world_rank() == 0) {
        fmt::print(stderr, "finch: the data cannot be read now, start it again to go on: {}\n", error.what());
    }
    return std::nullopt;
}

/// Collective over the world. The configuration, once it is known to be a search or one individual of it.
config::Config load_checked(const RunOptions& options, const cluster::Slurm& slurm, std::vector<std::string>& notes) {
    config::Config config = load_everywhere(options, slurm, notes);
    check_search(config, options.genes);
    if (options.profile && !config.trains()) {
        throw ConfigError("--profile: it measures the training of a network, and search.objective is none");
    }
    return config;
}

/// Collective over the world. World rank 0 opens the run directory, and says what it found; the others know what was
/// before. Nothing, on all ranks, where files fail: the run stops, to be resumed.
std::optional<OpenedRun> open_run_everywhere(const comm::Session& session, const store::RunDirectory& directory,
                                             const config::Config& config, const RunOptions& options,
                                             const cluster::Slurm& slurm, const std::string& data_fingerprint,
                                             const Placement& placement) try {
    const cluster::Layout& layout = placement.layout;
    OpenedRun opened;
    const std::string before = on_rank_zero(MPI_COMM_WORLD, [&] {
        opened = open_run(directory, config, options, slurm, data_fingerprint, static_cast<int>(layout.leaders.size()),
                          layout.islands, placement.nodes());
        spdlog::info("{}", opened.greeting);
        return to_message(opened.before);
    });
    opened.before = from_message<RunBefore>(before);
    return opened;
} catch (const StorageError& error) {
    if (session.world_rank() == 0) {
        fmt::print(stderr, "finch: the run cannot be opened now, start it again to go on: {}\n", error.what());
    }
    return std::nullopt;
}

/// `notes` come first.
void begin_log(const comm::Session& session, const config::Config& config, const cluster::Place& place,
               const std::vector<std::string>& notes) {
    set_up_log(config.log, session.world_rank(), place.group_rank == 0);
    for (const std::string& note : notes) {
        spdlog::info("{}", note);
    }
}

/// What world rank 0 says of the data, if there are any.
void log_data(const comm::Session& session, const config::Config& config, const data::Datasets& datasets) {
    if (!config.trains() || session.world_rank() != 0) {
        return;
    }
    spdlog::info("{}", data_text(config, datasets));
    for (const std::string& line : systems_lines(config, datasets)) {
        spdlog::info("{}", line);
    }
    if (const std::string warning = normalisation_warning(config, datasets.training); !warning.empty()) {
        spdlog::warn("{}", warning);
    }
}

/// From now on this process notes in the run directory how it ends.
void keep_end_notes(const store::RunDirectory& directory, int world_rank, const RunBefore& before, int worker) {
    try {
        cluster::keep_end_notes(directory.end_notes(), world_rank, before.restart, worker);
    } catch (const ApiError& error) {
        spdlog::warn("{}: should this process die, the next start cannot tell which individual it was", error.what());
    }
}

/// Ends this process at once, without a word to any other: its files are closed, and a peer may be dead.
[[noreturn]] void leave_at_once(int code) {
    std::fflush(nullptr);
    std::_Exit(code);
}

/// Collective over the world, but after TERM.
int end_together(const comm::Session& session, island::ExitReason reason) {
    // A follower that was dismissed after TERM leaves as its leader does, without a word to other workers.
    if (reason == island::ExitReason::urgent || cluster::stop_request() == StopRequest::urgent) {
        // A launcher ends the others when the first one leaves, so each waits for those that still save.
        comm::wait_for_all(MPI_COMM_WORLD, cluster::seconds_left_to_stop() - 2);
        leave_at_once(exit_stopped);
    }
    cluster::ignore_signals();
    begin_phase(session, "the end of the run", seconds_of_files());
    const RunState state = reason == island::ExitReason::complete ? RunState::complete : RunState::stopped;
    return exit_code(from_message<RunState>(comm::broadcast(MPI_COMM_WORLD, to_message(state))));
}

/// Collective over the world. The search itself, once all is open.
int run_search(const RunContext& context, OpenedRun opened, double timeout) {
    begin_phase(context.session, "the roll call before the search", timeout);
    comm::check_start(MPI_COMM_WORLD, context.placement.node_of_rank);
    begin_phase(context.session, "handing out the run", seconds_of_sharing());
    if (!context.group.is_leader()) {
        follow(context);
        return end_together(context.session, island::ExitReason::complete);
    }
    return end_together(context.session, lead(context, std::move(opened)));
}

/// Collective over the world. A stop that came so early that nothing has begun.
int stop_at_start(const comm::Session& session) {
    if (session.world_rank() == 0) {
        spdlog::info("stopped at the start, to be resumed: a signal asked to stop");
    }
    cluster::ignore_signals();
    return exit_stopped;
}

}  // namespace

std::filesystem::path run_directory_of(const config::Config& config, const RunOptions& options) {
    if (options.run) {
        return *options.run;
    }
    std::string name = config.name;
    if (options.genes) {
        // Other genes are another training, with a directory of its own.
        name += "-train";
        name +=
            options.genes->empty() ? "" : "-" + short_name(config.space, given_genome(config.space, *options.genes));
    }
    return std::filesystem::path("runs") / name;
}

int evolve(comm::Session& session, const RunOptions& options, process::Launcher launcher) {
    const cluster::Slurm slurm = read_slurm(session);
    cluster::catch_signals(slurm.end_time.value_or(0));
    call_roll(session);
    begin_phase(session, "reading the configuration", seconds_of_files());
    std::vector<std::string> notes;
    const config::Config config = load_checked(options, slurm, notes);
    const double timeout = std::max(config.workers.timeout_seconds, evaluate::seconds_of_silence);
    begin_phase(session, "forming the groups", timeout);
    if (stop_was_asked()) {
        return stop_at_start(session);
    }
    Placement placement = place_ranks(session, config, slurm);
    const cluster::Place& place = placement.mine(session.world_rank());
    begin_log(session, config, place, notes);
    comm::Group group(MPI_COMM_WORLD, place.worker, place.group_rank, config.workers.timeout_seconds);
    const comm::Communicator leaders = comm::make_leaders(MPI_COMM_WORLD, group.is_leader(), place.worker);
    comm::check_start(MPI_COMM_WORLD, placement.node_of_rank);
    begin_phase(session, "opening the devices and reading the data", seconds_of_files());
    const OpenedDevice opened_device = open_device(session, config, placement);
    on_every_rank(MPI_COMM_WORLD, [&] { check_precision(config, *opened_device.device, place.node); });
    const std::optional<LoadedData> loaded = load_data(session, config);
    if (!loaded) {
        return exit_stopped;
    }
    const data::Datasets& datasets = loaded->sets;
    const std::optional<PreparedPrograms> prepared = prepare_programs_everywhere(config);
    cluster::catch_signals(slurm.end_time.value_or(0));  // libraries of devices may have installed handlers
    if (stop_was_asked()) {
        return stop_at_start(session);
    }
    log_summary(session, config, placement, opened_device.description, opened_device.communicator);
    const std::unique_ptr<energy::Meter> meter = open_meter(session, config, placement, opened_device);
    log_data(session, config, datasets);
    begin_phase(session, "opening the run directory", seconds_of_files());
    const store::RunDirectory directory(run_directory_of(config, options));
    std::optional<OpenedRun> opened = open_run_everywhere(
        session, directory, config, options, slurm, prepared ? prepared->fingerprint : datasets.fingerprint, placement);
    if (!opened) {
        return exit_stopped;
    }
    keep_end_notes(directory, session.world_rank(), opened->before, place.worker);
    std::unique_ptr<evaluate::Programs> programs;
    if (prepared) {
        group.sleep_while_waiting();
        programs =
            make_programs(config, *prepared, group, launcher, placement, session.world_rank(), directory, meter.get());
    }
    const RunContext context{session,
                             config,
                             options,
                             slurm,
                             std::move(placement),
                             group,
                             leaders,
                             directory,
                             datasets,
                             *opened_device.device,
                             opened_device.communicator,
                             programs.get(),
                             meter.get()};
    return run_search(context, *std::move(opened), timeout);
}

int train_one(comm::Session& session, RunOptions options, process::Launcher launcher) {
    options.settings.insert(options.settings.end(),
                            {fmt::format("workers.ranks={}", session.world_size()), "workers.islands=1",
                             "workers.slots=1", "search.exchange={kind: none}", "search.islands=none",
                             "search.budget={evaluations: 1}", "search.final=none", "search.reuse=none"});
    return evolve(session, options, std::move(launcher));
}

}  // namespace finch::app
