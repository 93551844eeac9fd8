#include "finch/app/cnn_evaluator.hpp"
#include "finch/app/devices.hpp"
#include "finch/app/ending.hpp"
#include "finch/app/function_evaluator.hpp"
#include "finch/app/given.hpp"
#include "finch/app/load_data.hpp"
#include "finch/app/opening.hpp"
#include "finch/app/progress.hpp"
#include "finch/app/run.hpp"
#include "finch/app/share_run.hpp"
#include "finch/app/startup.hpp"
#include "finch/app/storage.hpp"
#include "finch/app/together.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/comm/mpi_mailbox.hpp"
#include "finch/report/tables.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace finch::app {
namespace {

/// Everything that stands when a search begins. Built in order, destroyed in reverse.
struct Stage {
    comm::Session& session;
    const config::Config& config;
    const RunOptions& options;
    cluster::Slurm slurm;
    Placement placement;
    const comm::Group& group;
    const comm::Communicator& leaders;  ///< null on followers
    const store::RunDirectory& directory;
    const data::Datasets& datasets;
    backend::Device& device;
    cluster::Communicator communicator;

    [[nodiscard]] const cluster::Place& place() const { return placement.mine(session.world_rank()); }
};

island::Stop stop_asked() {
    switch (cluster::stop_request()) {
        case cluster::StopRequest::none:
            return island::Stop::none;
        case cluster::StopRequest::orderly:
            return island::Stop::orderly;
        case cluster::StopRequest::urgent:
            return island::Stop::urgent;
    }
    return island::Stop::none;
}

island::Setup make_setup(const Stage& stage, const OpenedRun& run) {
    island::Setup setup;
    setup.run = run.facts.run;
    setup.seed = stage.config.seed;
    setup.restart = run.facts.restarts;
    setup.self = stage.place().worker;
    setup.island_of_worker = stage.placement.layout.island_of_worker;
    setup.workers_before = run.workers_before;
    const auto self = static_cast<std::size_t>(setup.self);
    setup.bred_before = self < run.bred_before.size() ? run.bred_before[self] : 0;
    setup.hours_before = run.hours_before;
    setup.budget = stage.config.budget;
    setup.exchange = stage.config.exchange;
    setup.archive_seconds = stage.config.checkpoint.archive_seconds;
    setup.training_seconds = stage.config.checkpoint.training_seconds;
    setup.node = stage.place().node;
    setup.device = stage.device.name();
    setup.ranks = stage.group.size();
    setup.threads = stage.placement.threads;
    return setup;
}

/// Followers: no more than obedience.
void follow(const Stage& stage) {
    if (stage.config.trains()) {
        Slots(stage.config, stage.datasets, stage.device, stage.group, stage.communicator).follow();
    } else {
        Bytes dismissal;
        stage.group.broadcast(dismissal);
    }
}

/// Leaders: after an orderly end everything is in one synced archive, and the journals are emptied. Collective over the
/// leaders.
void close_orderly(const Stage& stage, const island::Worker& worker, FileJournal& journal, FileArchive* archive) {
    std::string written;
    if (archive != nullptr) {
        archive->set_state(worker.ending() == island::Ending::complete ? "complete" : "stopped");
        // Twice, so that the predecessor holds all of it too.
        written = archive->write(worker.population()) && archive->write(worker.population()) ? "yes" : "no";
    }
    if (comm::broadcast(stage.leaders.get(), written) == "yes") {
        journal.forget_all();
    }
}

std::unique_ptr<island::Evaluator> make_evaluator(const Stage& stage, Slots& slots,
                                                  std::function<double()> best_known) {
    if (const auto* function = std::get_if<config::FunctionObjective>(&stage.config.objective)) {
        return std::make_unique<FunctionEvaluator>(*function, stage.config.seed, stage.config.workers.slots,
                                                   stage.group);
    }
    const CnnEvaluator::Place place{stage.place().worker, stage.placement.threads, stage.place().node};
    auto evaluator = std::make_unique<CnnEvaluator>(stage.config, slots, stage.group, stage.directory, place,
                                                    stage.device.name(), std::move(best_known));
    const data::Dataset& images = stage.datasets.training;
    evaluator->set_sample_shape({images.height, images.width, images.channels}, images.classes);
    return evaluator;
}

void say_goodbye(const Stage& stage, const island::Worker& worker, const FileArchive& archive) {
    LiveLine::clear();
    if (stage.config.trains()) {
        try {
            if (const auto said =
                    publish_best(stage.directory, stage.config, stage.datasets, stage.device, worker.population())) {
                spdlog::info("{}", *said);
            }
        } catch (const ApiError& error) {
            spdlog::warn("models/best.h5 could not be written: {}", error.what());
        } catch (const std::bad_alloc&) {
            spdlog::warn("models/best.h5 could not be written: no memory to measure the best model on the test set");
        }
    }
    const bool complete = worker.ending() == island::Ending::complete;
    spdlog::info("{}: {} evaluated, {} unfinished; look at {} with h5dump or finch show",
                 complete ? "complete" : "stopped early, to be resumed", worker.population().settled(),
                 worker.population().size() - worker.population().settled(), stage.directory.archive().string());
    fmt::print("\n{}", report::best_table(stage.config.space, worker.population(), archive.facts(), 3));
}

/// Leaders: the search itself. Collective over the leaders at its beginning and its orderly end.
island::Ending lead(const Stage& stage, OpenedRun opened) {
    const bool is_zero = stage.session.world_rank() == 0;
    OpenedRun run = share_run(stage.leaders.get(), std::move(opened), stage.placement.layout.island_of_worker,
                              stage.config.exchange.kind, stage.placement.layout.islands);
    FileJournal journal(stage.directory.journal(stage.place().worker), run.facts.run);
    std::optional<FileArchive> archive;
    if (is_zero) {
        archive.emplace(stage.directory, stage.config.space, run.facts, *run.lock);
    }
    const auto mailbox = comm::make_mpi_mailbox(stage.leaders.get());
    std::optional<Slots> slots;
    slots.emplace(stage.config, stage.datasets, stage.device, stage.group, stage.communicator);
    const search::Population* population = nullptr;
    const auto evaluator = make_evaluator(stage, *slots, [&population] {
        const search::Individual* best = population->best();
        return best != nullptr ? best->loss : std::numeric_limits<double>::infinity();
    });
    const auto propagator = stage.options.genes ? make_given(stage.config.space, *stage.options.genes)
                                                : search::make_propagator(stage.config.propagator, stage.config.space);
    Progress progress(stage.config, is_zero, run.population.settled(), run.hours_before);
    island::Worker worker(
        make_setup(stage, run), stage.config.space, std::move(run.population), *propagator, *evaluator, journal,
        *mailbox, is_zero ? &*archive : nullptr, progress,
        {unix_seconds, steady_seconds, stop_asked, stage.slurm.end_time.value_or(0), cluster::request_orderly_stop});
    population = &worker.population();
    const island::Ending ending = worker.run();
    if (ending == island::Ending::urgent) {
        evaluator->dismiss();
        if (archive) {
            archive->set_state("stopped");
            archive->write(worker.population());
        }
        return ending;
    }
    evaluator->dismiss();
    close_orderly(stage, worker, journal, archive ? &*archive : nullptr);
    if (is_zero) {
        say_goodbye(stage, worker, *archive);
    }
    return ending;
}

/// Collective over the world. The same configuration on every rank, read by world rank 0 alone.
config::Config load_everywhere(const RunOptions& options) {
    const std::string text =
        on_rank_zero(MPI_COMM_WORLD, [&] { return config::load(options.config, options.settings).text(); });
    return config::parse(text, options.config.string());
}

LoadedData load_data(const config::Config& config) {
    if (!config.trains()) {
        return {};
    }
    RandomStream random(config.seed, Purpose::test);
    const data::Options options = config.recipe(search::random_genome(config.space, random), 0).data;
    LoadedData loaded = load_on_each_node(options, config.seed);
    static_cast<void>(on_rank_zero(MPI_COMM_WORLD, [&] {
        const data::Dataset& images = loaded.sets.training;
        static_cast<void>(
            data::split(options, images.samples(), config.seed));  // refuses what leaves nothing to train on
        config::check_models(config, {images.height, images.width, images.channels}, images.classes);
        return std::string();
    }));
    return loaded;
}

/// Collective over the world. The configuration, once it is known to be a search or one individual of it.
config::Config load_checked(const RunOptions& options) {
    config::Config config = load_everywhere(options);
    if (!options.genes && config.space.size() == 0) {
        throw ConfigError(
            "search.space: a search needs at least one gene; finch train trains one individual without a search");
    }
    if (options.genes) {
        static_cast<void>(make_given(config.space, *options.genes));  // says what is wrong with the genes
    }
    return config;
}

/// Collective over the world. World rank 0 opens the run directory, and says what it found.
OpenedRun open_run_everywhere(const store::RunDirectory& directory, const config::Config& config,
                              const RunOptions& options, const cluster::Slurm& slurm, const data::Datasets& datasets,
                              const cluster::Layout& layout) {
    OpenedRun opened;
    static_cast<void>(on_rank_zero(MPI_COMM_WORLD, [&] {
        opened = open_run(directory, config, options, slurm, datasets.fingerprint,
                          static_cast<int>(layout.leaders.size()), layout.islands);
        spdlog::info("{}", opened.greeting);
        return std::string();
    }));
    return opened;
}

/// Collective over the world, but after TERM.
int end_together(island::Ending ending) {
    // A follower that was dismissed after TERM leaves as its leader does, without a word to other workers.
    if (ending == island::Ending::urgent || cluster::stop_request() == cluster::StopRequest::urgent) {
        leave_at_once(exit_stopped);
    }
    cluster::ignore_signals();
    const bool complete = comm::broadcast(MPI_COMM_WORLD, ending == island::Ending::complete ? "yes" : "no") == "yes";
    return complete ? exit_done : exit_stopped;
}

}  // namespace

std::filesystem::path run_directory_of(const config::Config& config, const RunOptions& options) {
    return options.run ? *options.run : std::filesystem::path("runs") / config.name;
}

int evolve(comm::Session& session, const RunOptions& options) {
    const cluster::Slurm slurm = cluster::Slurm::read(cluster::Environment::of_this_process());
    if (const auto problem = cluster::launch_problem(slurm, session.world_size())) {
        throw ConfigError(*problem);
    }
    const config::Config config = load_checked(options);
    cluster::catch_signals(slurm.end_time.value_or(0));
    Placement placement = place_ranks(session, config, slurm);
    const cluster::Place& place = placement.mine(session.world_rank());
    set_up_log(config.log, session.world_rank(), place.group_rank == 0);
    const comm::Group group(MPI_COMM_WORLD, place.worker, place.group_rank, config.workers.timeout_seconds);
    const comm::Communicator leaders = comm::make_leaders(MPI_COMM_WORLD, group.is_leader(), place.worker);
    comm::check_start(MPI_COMM_WORLD, config.workers.timeout_seconds, placement.node_of_rank);
    const OpenedDevice opened_device = open_device(session, config, placement);
    const LoadedData loaded = load_data(config);
    const data::Datasets& datasets = loaded.sets;
    if (config.trains()) {
        check_first_weights(config, datasets);
    }
    log_summary(session, config, placement, opened_device.description, opened_device.communicator);
    const store::RunDirectory directory(run_directory_of(config, options));
    OpenedRun opened = open_run_everywhere(directory, config, options, slurm, datasets, placement.layout);
    const Stage stage{session,
                      config,
                      options,
                      slurm,
                      std::move(placement),
                      group,
                      leaders,
                      directory,
                      datasets,
                      *opened_device.device,
                      opened_device.communicator};
    if (!group.is_leader()) {
        follow(stage);
        return end_together(island::Ending::complete);
    }
    return end_together(lead(stage, std::move(opened)));
}

int train_one(comm::Session& session, RunOptions options) {
    options.settings.insert(options.settings.end(),
                            {fmt::format("workers.ranks={}", session.world_size()), "workers.islands=1",
                             "workers.slots=1", "search.exchange.kind=none", "search.budget={evaluations: 1}"});
    if (!options.run) {
        const std::string name = on_rank_zero(
            MPI_COMM_WORLD, [&] { return config::load(options.config, options.settings).name + "-train"; });
        options.run = std::filesystem::path("runs") / name;
    }
    return evolve(session, options);
}

}  // namespace finch::app
