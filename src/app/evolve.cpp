#include "finch/app/evolve.hpp"

#include "finch/app/checks.hpp"
#include "finch/app/devices.hpp"
#include "finch/app/first_guesses.hpp"
#include "finch/app/given.hpp"
#include "finch/app/launch.hpp"
#include "finch/app/load_data.hpp"
#include "finch/app/meters.hpp"
#include "finch/app/on_every_rank.hpp"
#include "finch/app/opening.hpp"
#include "finch/app/programs.hpp"
#include "finch/app/run_context.hpp"
#include "finch/app/run_search.hpp"
#include "finch/app/share_run.hpp"
#include "finch/app/startup.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/cluster/end_notes.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/comm/group.hpp"
#include "finch/comm/mpi_mailbox.hpp"
#include "finch/comm/phase.hpp"
#include "finch/evaluate/order.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

namespace finch::app {
namespace {

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
        complain(fmt::format("the data cannot be read now, start it again to go on: {}", error.what()));
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
/// before, and the leaders what their islands need, which they merge while the start is recorded. Nothing, on all
/// ranks, where files fail: the run stops, to be resumed.
std::optional<OpenedRun> open_run_everywhere(const comm::Session& session, const store::RunDirectory& directory,
                                             const config::Config& config, const RunOptions& options,
                                             const cluster::Slurm& slurm, const std::string& data_fingerprint,
                                             const std::vector<std::string>& class_names, const Placement& placement,
                                             MPI_Comm leaders) try {
    begin_phase(session, "opening the run directory", seconds_of_files());
    const cluster::Layout& layout = placement.layout;
    OpenedRun opened;
    const std::string before = on_rank_zero(MPI_COMM_WORLD, [&] {
        cluster::Slurm job = slurm;
        job.node_list = slurm.node_list ? slurm.node_list : placement.node_list();
        opened = open_run(directory, config, options, job, data_fingerprint, static_cast<int>(layout.leaders.size()),
                          layout.islands, placement.nodes());
        check_class_names(opened, directory, class_names);
        spdlog::info("{}", opened.greeting);
        return to_message(opened.before);
    });
    opened.before = from_message<RunBefore>(before);
    begin_phase(session, "handing out the run", seconds_of_sharing());
    if (leaders != MPI_COMM_NULL) {
        opened = share_run(leaders, std::move(opened), layout.island_of_worker, config.exchange.kind, layout.islands,
                           config.costs);
    }
    begin_phase(session, "recording the start", seconds_of_files());
    static_cast<void>(on_rank_zero(MPI_COMM_WORLD, [&] {
        record_start(opened, directory, config);
        return std::string();
    }));
    return opened;
} catch (const StorageError& error) {
    if (session.world_rank() == 0) {
        complain(fmt::format("the run cannot be opened now, start it again to go on: {}", error.what()));
    }
    return std::nullopt;
}

/// World rank 0's warnings and `notes` come first.
void begin_log(const comm::Session& session, const config::Config& config, const cluster::Place& place,
               const std::vector<std::string>& warnings, const std::vector<std::string>& notes) {
    set_up_log(config.log, session.world_rank(), place.group_rank == 0);
    for (std::size_t i = 0; session.world_rank() == 0 && i < warnings.size(); ++i) {
        spdlog::warn("{}", warnings[i]);
    }
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
    for (const std::string& warning : data_warnings(config, datasets)) {
        spdlog::warn("{}", warning);
    }
}

/// What world rank 0 says of a command; a trial has printed it.
void log_command_notes(const comm::Session& session, const RunOptions& options,
                       const std::optional<PreparedPrograms>& prepared) {
    if (!prepared || session.world_rank() != 0 || options.is_trial) {
        return;
    }
    const CommandNotes notes = command_notes(prepared->line);
    for (const std::string& remark : notes.remarks) {
        spdlog::info("{}", remark);
    }
    for (const std::string& warning : notes.warnings) {
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
    barrier_with_deadline(session);
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
    begin_log(session, config, place, slurm.warnings, notes);
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
    log_command_notes(session, options, prepared);
    const store::RunDirectory directory(run_directory_of(config, options));
    std::optional<OpenedRun> opened = open_run_everywhere(session, directory, config, options, slurm,
                                                          prepared ? prepared->fingerprint : datasets.fingerprint,
                                                          datasets.training.class_names, placement, leaders.get());
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
