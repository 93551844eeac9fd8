// The preparation of a start. The search itself is in src/run/search.cpp.
#include "finch/run/run.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/cluster/end_notes.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/comm/mpi.hpp"
#include "finch/comm/mpi_mailbox.hpp"
#include "finch/comm/phase.hpp"
#include "finch/config/config.hpp"
#include "finch/energy/meter.hpp"
#include "finch/evaluate/order.hpp"
#include "finch/run/checks.hpp"
#include "finch/run/devices.hpp"
#include "finch/run/first_guesses.hpp"
#include "finch/run/on_every_rank.hpp"
#include "finch/run/share_run.hpp"
#include "finch/run/startup.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace finch::run {
namespace {

/// Returns the source of energy values as text: "measured by the GPUs (NVML)". If ranks have different sources, the
/// text gives the number of ranks for each source.
std::string names_text(const std::vector<std::string>& names) {
    std::map<std::string, std::size_t> counts;
    for (const std::string& name : names) {
        ++counts[name.empty() ? "not known (workers.watts: W would estimate it)" : name];
    }
    std::vector<std::string> parts;
    for (const auto& [name, count] : counts) {
        parts.push_back(name + (counts.size() > 1 ? fmt::format(" on {} of {} ranks", count, names.size()) : ""));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// Collective over the world. Returns the energy meter of this rank; null if there is none or the objective is a
/// function. World rank 0 logs the meters of all ranks in one line.
std::unique_ptr<energy::Meter> open_meter(const comm::Session& session, const config::Config& config,
                                          const Placement& placement, const OpenedDevice& device) {
    if (std::holds_alternative<config::FunctionObjective>(config.objective)) {
        return nullptr;
    }
    energy::Found found = energy::open_meter({.gpu = device.uuid,
                                              .ranks_on_gpu = device.ranks_on_it,
                                              .ranks_on_node = placement.mine(session.world_rank()).local_ranks,
                                              .watts = config.workers.watts});
    const auto names = comm::gather_all(MPI_COMM_WORLD, found.name);
    const auto problems = comm::gather_all(MPI_COMM_WORLD, found.problem);
    const auto problem = std::find_if(problems.begin(), problems.end(), [](const auto& text) { return !text.empty(); });
    const std::string text = names_text(names) + (problem == problems.end() ? "" : "; " + *problem);
    const std::string key = key_of_joules(config);
    if (!key.empty() && std::count(names.begin(), names.end(), std::string()) > 0) {
        throw ConfigError(fmt::format("{}: joules are {}", key, text));
    }
    if (session.world_rank() == 0) {
        spdlog::info("energy: {}", text);
    }
    return std::move(found.meter);
}

/// Collective over the world. Reads the Slurm variables, installs the signal handlers and waits for all ranks.
cluster::Slurm read_slurm(const comm::Session& session) {
    cluster::Slurm slurm = cluster::Slurm::read(cluster::Environment::of_this_process());
    cluster::catch_signals(slurm.end_time.value_or(0));
    cluster::reserve_cpu_seconds(cluster::usable_cpus());
    barrier_with_deadline(session);
    return slurm;
}

/// Collective over the world. Returns the same configuration on every rank. Only world rank 0 reads the file and gets
/// `notes`.
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

/// Collective over the world. Returns the checked configuration. Throws ConfigError if the configuration describes
/// neither a search nor one individual of a search.
config::Config load_checked(const comm::Session& session, const RunOptions& options, const cluster::Slurm& slurm,
                            std::vector<std::string>& notes) {
    begin_phase(session, Phase::configuration, start_seconds());
    config::Config config = load_everywhere(options, slurm, notes);
    check_search(config, options.genes);
    if (options.profile && !config.trains()) {
        throw ConfigError("--profile: it measures the training of a network, and search.objective is none");
    }
    return config;
}

/// Collective over the world. Throws StoppedAtStart on all ranks if any rank was asked to stop.
void stop_if_asked() {
    if (stop_was_asked()) {
        throw StoppedAtStart{"stopped at the start, to be resumed: a signal asked to stop"};
    }
}

/// Collective over the world. Computes the layout and sets up the log. World rank 0 logs the first warnings and notes.
Placement place(Run& run) {
    run.begin(Phase::groups);
    stop_if_asked();
    Placement placement = place_ranks(run.session, run.config, run.slurm);
    run.config.resolve_populations(cluster::workers_of_islands(placement.layout));
    on_every_rank(MPI_COMM_WORLD, [&] {
        set_up_log(run.config.log, run.session.world_rank(), placement.mine(run.session.world_rank()).group_rank == 0);
    });
    if (run.is_world_rank_0()) {
        for (const std::string& warning : run.slurm.warnings) {
            spdlog::warn("{}", warning);
        }
        for (const std::string& note : run.notes) {
            spdlog::info("{}", note);
        }
    }
    return placement;
}

/// Collective over the world.
OpenedDevice open_checked_device(const Run& run) {
    comm::check_start(MPI_COMM_WORLD, run.placement.node_of_rank);
    run.begin(Phase::devices_and_data);
    OpenedDevice device = open_device(run.session, run.config, run.placement);
    on_every_rank(MPI_COMM_WORLD, [&] { check_precision(run.config, *device.device, run.place().node); });
    return device;
}

/// Collective over the world.
LoadedData load_data(const Run& run) try {
    if (!run.config.trains()) {
        return {};
    }
    LoadedData loaded = load_on_each_node(data_options(run.config), run.config.seed);
    static_cast<void>(on_rank_zero(MPI_COMM_WORLD, [&] {
        check_data(run.config, loaded.sets);
        return std::string();
    }));
    check_first_weights(run.config, loaded.sets);
    return loaded;
} catch (const StorageError& error) {
    throw StoppedAtStart{fmt::format("the data cannot be read now, start it again to resume: {}", error.what())};
}

/// Logs, on world rank 0, the facts about the data, if there are data.
void log_data(const Run& run) {
    if (!run.config.trains() || !run.is_world_rank_0()) {
        return;
    }
    spdlog::info("{}", data_text(run.config, run.datasets()));
    for (const std::string& line : systems_lines(run.config, run.datasets())) {
        spdlog::info("{}", line);
    }
    for (const std::string& warning : data_warnings(run.config, run.datasets())) {
        spdlog::warn("{}", warning);
    }
}

/// Logs, on world rank 0, the notes about a command. A trial does not log them, because it has printed them before.
void log_command_notes(const Run& run) {
    if (!run.prepared || !run.is_world_rank_0() || run.options.is_trial) {
        return;
    }
    const CommandNotes notes = command_notes(run.prepared->line);
    for (const std::string& remark : notes.remarks) {
        spdlog::info("{}", remark);
    }
    for (const std::string& warning : notes.warnings) {
        spdlog::warn("{}", warning);
    }
}

/// Collective over the world. Opens the energy meter and logs a summary of this start, as the last step before the run
/// directory is opened.
std::unique_ptr<energy::Meter> open_meter_and_log(const Run& run) {
    cluster::catch_signals(run.slurm.end_time.value_or(0));  // device libraries may have installed handlers
    stop_if_asked();
    log_summary(run.session, run.config, run.placement, run.device.description, run.device.communicator);
    auto meter = open_meter(run.session, run.config, run.placement, run.device);
    log_data(run);
    log_command_notes(run);
    return meter;
}

/// Enables the end note of this process in the run directory.
void keep_end_notes(const Run& run, const RunBefore& before) {
    try {
        cluster::keep_end_notes(run.directory.end_notes(), run.session.world_rank(), before.restart,
                                run.place().worker);
    } catch (const ApiError& error) {
        spdlog::warn("{}: should this process die, the next start cannot tell which individual it was", error.what());
    }
}

/// Collective over the world. World rank 0 opens the run directory and logs its state. All ranks get the facts about
/// earlier starts. The leaders also get the individuals that their islands need, and merge them while world rank 0
/// records the start.
OpenedRun open_run_everywhere(const Run& run) {
    run.begin(Phase::run_directory);
    const cluster::Layout& layout = run.placement.layout;
    OpenedRun opened;
    const std::string before = on_rank_zero(MPI_COMM_WORLD, [&] {
        cluster::Slurm job = run.slurm;
        job.node_list = job.node_list ? job.node_list : run.placement.node_list();
        const std::string& fingerprint = run.prepared ? run.prepared->fingerprint : run.datasets().fingerprint;
        opened = open_run(run.directory, run.config, run.options, job, fingerprint,
                          static_cast<int>(layout.leaders.size()), layout.islands, run.placement.nodes());
        check_class_names(opened, run.directory, run.datasets().training.class_names);
        spdlog::info("{}", opened.greeting);
        return to_message(opened.before);
    });
    opened.before = from_message<RunBefore>(before);
    run.begin(Phase::handing_out_run);
    if (run.leaders.get() != MPI_COMM_NULL) {
        opened = share_run(run.leaders.get(), std::move(opened), layout.island_of_worker, run.config.exchange.kind,
                           layout.islands, run.config.costs);
    }
    run.begin(Phase::recording_start);
    static_cast<void>(on_rank_zero(MPI_COMM_WORLD, [&] {
        record_start(opened, run.directory, run.config);
        return std::string();
    }));
    keep_end_notes(run, opened.before);
    return opened;
}

}  // namespace

/// All files are used in on_rank_zero() and on_every_rank(), so every rank gets the same StorageError.
Run::Run(comm::Session& the_session, const RunOptions& the_options, process::Launcher the_launcher) try
    : session(the_session),
      options(the_options),
      launcher(std::move(the_launcher)),
      slurm(read_slurm(session)),
      config(load_checked(session, options, slurm, notes)),
      seconds_to_answer(std::max(config.workers.timeout_seconds, evaluate::seconds_of_silence)),
      placement(run::place(*this)),
      group(MPI_COMM_WORLD, place().worker, place().group_rank, config.workers.timeout_seconds),
      leaders(comm::make_leaders(MPI_COMM_WORLD, group.is_leader(), place().worker)),
      device(open_checked_device(*this)),
      data(load_data(*this)),
      prepared(prepare_programs_everywhere(config)),
      meter(open_meter_and_log(*this)),
      directory(run_directory_of(config, options)),
      opened(open_run_everywhere(*this)) {
} catch (const StorageError& error) {
    throw StoppedAtStart{fmt::format("the run cannot be opened now, start it again to resume: {}", error.what())};
}

}  // namespace finch::run
