#include "finch/app/comparison.hpp"
#include "finch/app/verbs.hpp"
#include "finch/backend/device.hpp"
#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/report/individual.hpp"
#include "finch/run/devices.hpp"
#include "finch/run/load_data.hpp"
#include "finch/run/on_every_rank.hpp"
#include "finch/run/startup.hpp"
#include "finch/search/individual.hpp"
#include "finch/store/resume.hpp"

#include "replay_program.hpp"

#include <algorithm>
#include <utility>

namespace finch::app {
namespace {

constexpr std::int64_t steps_between_looks = 50;

/// The configuration and one individual of a run, as sent from world rank 0.
struct Recorded {
    std::string config;
    std::string fingerprint;
    /// The last element is the individual to replay. Every other element supplied the initial weights of the next
    /// element, or was continued by it.
    std::vector<search::Individual> lineage;
};

Recorded read_recorded(const std::filesystem::path& run, const std::string& id) {
    store::Recovered recovered = store::recover_run(store::RunDirectory(run));
    recovered.adopt(config::parse(recovered.facts.config, run.string()).space);
    const search::Id wanted = search::parse_id(id);
    search::Population population(search::ExchangeKind::none, 1);
    recovered.merge_into(population);
    const search::Individual* individual = population.find(wanted);
    if (individual == nullptr) {
        throw ConfigError(
            fmt::format("{}: there is no individual {}; finch show --csv lists them all", run.string(), id));
    }
    if (!individual->finished_training() && individual->curve.empty()) {
        throw ConfigError(fmt::format(
            "{}: {} is unfinished, and no epoch of it is recorded that could be compared; accepted: one that has ended",
            run.string(), id));
    }
    if (individual->is_reused()) {
        const std::string trained = to_text(individual->reused_from);
        if (individual->is_of_another_run()) {
            const std::string other = report::directory_of(recovered.facts, individual->reused_run);
            throw ConfigError(
                fmt::format("{}: {} was not trained here: it has the result of {} of another run (search.reuse); "
                            "accepted: finch replay {} {}",
                            run.string(), id, trained, other, trained));
        }
        throw ConfigError(fmt::format(
            "{}: {} was not trained: its genome is that of {}, whose result it has (search.duplicates); accepted: "
            "finch replay {} {}",
            run.string(), id, trained, run.string(), trained));
    }
    Recorded recorded{recovered.facts.config, recovered.facts.data_fingerprint, {}};
    std::vector<search::Individual>& lineage = recorded.lineage;
    for (; individual != nullptr; individual = population.find(individual->inherited_from)) {
        lineage.push_back(*individual);
        if (lineage.size() > population.size()) {
            throw ConfigError(fmt::format("{}: {} descends from itself", run.string(), id));
        }
    }
    if (lineage.back().inherited_from != search::Id{}) {
        throw ConfigError(fmt::format("{}: {} began with the weights of {}, which is not recorded", run.string(),
                                      to_text(lineage.back().id), to_text(lineage.back().inherited_from)));
    }
    std::reverse(lineage.begin(), lineage.end());
    return recorded;
}

/// Warns before a long training if the replay cannot be equal to the last bit.
void warn_of_ranks(const search::Individual& individual, int ranks) {
    const std::size_t comparable = comparable_epochs(individual, ranks);
    const std::size_t epochs = individual.curve.size();
    if (comparable == epochs && (epochs > 0 || individual.ranks == ranks)) {
        return;
    }
    if (comparable > 0) {
        spdlog::warn(
            "{} was trained by {} ranks until epoch {}, then by others: only epochs 1 to {} are compared bit "
            "for bit",
            to_text(individual.id), ranks, comparable, comparable);
        return;
    }
    const std::int32_t first = epochs > 0 ? individual.curve.front().ranks : 0;
    spdlog::warn("{} was begun by {} ranks, now by {}: the last bits will differ", to_text(individual.id),
                 first > 0 ? first : individual.ranks, ranks);
}

/// Collective over the world. Opens a device of the type on which the individual was trained. All ranks form one
/// worker.
run::OpenedDevice open_as_recorded(const comm::Session& session, config::Config config,
                                   const search::Individual& individual) {
    config.workers.ranks = session.world_size();
    config.workers.islands = 1;
    config.workers.island_sizes.clear();
    config.workers.slots = 1;
    config.workers.threads = std::max(1, individual.threads);
    // The record has the name of the device: a word of DeviceKind, or the product name of a CUDA device.
    config.workers.device = enumerator<cluster::DeviceKind>(individual.device).value_or(cluster::DeviceKind::cuda);
    config.workers.communicator = cluster::AllReduceKind::automatic;
    const run::Placement placement =
        run::place_ranks(session, config, cluster::Slurm::read(cluster::Environment::of_this_process()));
    return run::open_device(session, config, placement);
}

/// Collective over the world. Trains until the individual's end, or until `last_epoch` if it is not 0.
void train_again(train::Training& training, const search::Individual& individual, const comm::Group& group,
                 std::int32_t last_epoch) {
    const bool ends_early = individual.outcome == search::Outcome::pruned;
    const std::size_t end = last_epoch > 0 ? static_cast<std::size_t>(last_epoch)
                            : ends_early   ? individual.curve.size()
                                           : 0;
    if (end > 0) {
        // Ends the training at the recorded epoch, without repeating the comparison that pruned it.
        training.set_pruner([end](std::span<const Epoch> curve, std::int64_t) { return curve.size() >= end; });
    }
    std::size_t told = training.curve().size();
    while (group.maximum(static_cast<std::int64_t>(training.advance(steps_between_looks))) == 0) {
        if (group.is_leader() && training.curve().size() > told) {
            told = training.curve().size();
            spdlog::info("{}, epoch {} of {}: validation loss {:.6g}", to_text(individual.id), told,
                         last_epoch > 0 ? end : individual.curve.size(), training.curve().back().validation_loss);
        }
    }
    if (std::ssize(training.curve()) < last_epoch) {
        throw Error(fmt::format("{} ended after epoch {}, but its heir began after epoch {}", to_text(individual.id),
                                training.curve().size(), last_epoch));
    }
}

}  // namespace

int replay(comm::Session& session, process::Launcher launcher, const std::filesystem::path& run,
           const std::string& id) {
    const auto recorded =
        from_message<Recorded>(run::on_rank_zero(MPI_COMM_WORLD, [&] { return to_message(read_recorded(run, id)); }));
    const search::Individual& individual = recorded.lineage.back();
    const config::Config config = config::parse(recorded.config, (run / "config.yaml").string());
    if (std::holds_alternative<config::FunctionObjective>(config.objective)) {
        throw ConfigError("replay trains networks and runs programs again, and this run has a function");
    }
    if (session.world_rank() == 0) {
        for (const search::Individual& one : recorded.lineage) {
            warn_of_ranks(one, session.world_size());
        }
    }
    if (!config.trains()) {
        return replay_program(session, launcher, run, config, recorded.fingerprint, recorded.lineage);
    }
    cluster::release_signals();
    const comm::Group group(MPI_COMM_WORLD, 0, session.world_rank(), config.workers.timeout_seconds);
    const run::OpenedDevice opened = open_as_recorded(session, config, individual);
    const auto all_reduce =
        comm::make_all_reduce(opened.communicator, group, *opened.device, config.workers.timeout_seconds);
    const train::Recipe recipe = config.recipe(individual.genome, individual.id.value);
    const run::LoadedData loaded = run::load_on_each_node(recipe.data, config.seed);
    const data::Datasets& datasets = loaded.sets;
    if (datasets.fingerprint != recorded.fingerprint) {
        throw ConfigError(fmt::format("the data are others than the run's (checksum {} then, {} now)",
                                      recorded.fingerprint, datasets.fingerprint));
    }
    std::unique_ptr<train::Training> training;
    for (std::size_t i = 0; i < recorded.lineage.size(); ++i) {
        const search::Individual& one = recorded.lineage[i];
        const NamedArrays inherited = !training       ? NamedArrays{}
                                      : one.is_heir() ? training->snapshot()
                                                      : training->best_weights();
        training.reset();
        run::on_every_rank(MPI_COMM_WORLD, [&] {
            training = std::make_unique<train::Training>(*opened.device, group, *all_reduce, datasets,
                                                         config.recipe(one.genome, one.id.value));
            if (one.is_heir()) {
                training->continue_from(inherited);
            } else if (!inherited.empty()) {
                training->begin_with(inherited);
            }
        });
        const bool is_last = i + 1 == recorded.lineage.size();
        train_again(*training, one, group, is_last ? 0 : recorded.lineage[i + 1].inherited_epochs);
    }
    if (session.world_rank() != 0) {
        return exit_done;
    }
    const Comparison comparison = compare(training->curve(), individual, session.world_size());
    fmt::print("{}", comparison.text);
    return comparison.equal ? exit_done : exit_fault;
}

}  // namespace finch::app
