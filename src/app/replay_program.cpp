#include "replay_program.hpp"

#include "finch/app/comparison.hpp"
#include "finch/app/verbs.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/evaluate/command_evaluator.hpp"
#include "finch/run/on_every_rank.hpp"
#include "finch/run/programs.hpp"
#include "finch/run/startup.hpp"

#include "temporary_place.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace finch::app {
namespace {

/// Changes `config` so that all ranks form one worker, with the threads that `individual` had, and so that programs at
/// rungs of `lineage` are copied for their heirs.
void adapt(config::Config& config, const std::vector<search::Individual>& lineage, int ranks) {
    config.workers.threads = std::max(1, lineage.back().threads / config.workers.slots);
    config.workers.ranks = ranks;
    config.workers.islands = 1;
    config.workers.island_sizes.clear();
    config.workers.slots = 1;
    std::get<config::CommandObjective>(config.objective).grace_seconds = 0;  // no start resumes a replayed program
    const auto rungs = search::rungs_of(config.pruning);
    if (lineage.size() > 1 && rungs) {  // a later start may have set search.inherit to none
        config.inherit = config.inherit.value_or(search::InheritOptions{});
        config.inherit->rungs = *rungs;
    }
}

/// Returns `recorded` as it was before its evaluation.
search::Individual newborn(const search::Individual& recorded, const config::Config& config) {
    search::Individual one;
    one.id = recorded.id;
    one.attempt = {recorded.id.restart(), 0};
    one.genome = recorded.genome;
    one.inherited_from = recorded.inherited_from;
    one.inherited_epochs = one.epochs = recorded.inherited_epochs;
    if (one.is_heir()) {
        one.pruning.edit().rung = config.inherit->rungs.passed(one.inherited_epochs);
    }
    return one;
}

/// Leader only. Runs the program of `recorded` until its end, or until it has reported `last_epoch` if that is not 0.
/// Returns the reported epochs.
std::vector<Epoch> run_again(evaluate::CommandEvaluator& evaluator, search::Individual one, std::int32_t last_epoch) {
    const bool is_heir = one.is_heir();
    const search::Id id = one.id;
    std::int32_t told = one.epochs;
    const search::Population none(search::ExchangeKind::none, 1);  // so no program is pruned
    evaluator.start(std::move(one), none);
    if (evaluator.in_progress().front()->is_heir() != is_heir) {
        throw Error(fmt::format("{} cannot continue its parent", to_text(id)));
    }
    std::vector<search::Individual> done;
    while (done.empty() && (last_epoch == 0 || told < last_epoch)) {
        done = evaluator.advance(none);
        if (cluster::stop_request() != StopRequest::none) {
            static_cast<void>(evaluator.stop());
            throw Error("replay was stopped by a signal, and keeps nothing");
        }
        const auto running = evaluator.in_progress();
        if (!running.empty() && running.front()->epochs > told) {
            told = running.front()->epochs;
            spdlog::info("{}, epoch {}", to_text(id), told);
        }
    }
    if (!done.empty()) {
        if (!done.front().problem.empty()) {
            spdlog::warn("{}: {}", to_text(id), done.front().problem);
        }
        return std::move(done.front().curve);
    }
    std::vector<Epoch> epochs = evaluator.reported(0);
    static_cast<void>(evaluator.stop());
    return epochs;
}

/// Leader only. Returns the epochs of the last individual of `lineage`, after its ancestors have run.
std::vector<Epoch> run_lineage(evaluate::CommandEvaluator& evaluator, const config::Config& config,
                               const std::vector<search::Individual>& lineage) {
    std::vector<Epoch> again;
    for (std::size_t i = 0; i < lineage.size(); ++i) {
        const search::Individual& one = lineage[i];
        const bool is_last = i + 1 == lineage.size();
        const bool runs_to_its_end = one.outcome != search::Outcome::pruned && one.finished_training();
        const std::int32_t recorded = one.curve.empty() ? 0 : one.curve.back().epoch;
        const std::int32_t end = !is_last ? lineage[i + 1].inherited_epochs : runs_to_its_end ? 0 : recorded;
        again = run_again(evaluator, newborn(one, config), end);
        if (const std::int32_t last = again.empty() ? 0 : again.back().epoch; last < end) {
            throw Error(fmt::format("{} ended after epoch {}, but epoch {} is recorded", to_text(one.id), last, end));
        }
    }
    if (lineage.back().outcome == search::Outcome::pruned) {
        again.resize(std::min(again.size(), lineage.back().curve.size()));
    }
    return again;
}

}  // namespace

int replay_program(comm::Session& session, process::Launcher& launcher, const std::filesystem::path& run,
                   config::Config config, const std::string& fingerprint,
                   const std::vector<search::Individual>& lineage) {
    const int ranks = session.world_size();
    adapt(config, lineage, ranks);
    const auto prepared = run::prepare_programs_everywhere(config);
    if (prepared->fingerprint != fingerprint) {
        throw ConfigError(
            fmt::format("search.objective.files: the templates have changed since the run (checksum {} then, {} now); "
                        "restore them to replay",
                        fingerprint, prepared->fingerprint));
    }
    comm::Group group(MPI_COMM_WORLD, 0, session.world_rank(), config.workers.timeout_seconds);
    group.sleep_while_waiting();
    const auto slurm = cluster::Slurm::read(cluster::Environment::of_this_process());
    cluster::catch_signals(slurm.end_time.value_or(0));  // so that the temporary folder is always removed
    const run::Placement placement = run::place_ranks(session, config, slurm);
    std::optional<TemporaryPlace> place;
    const store::RunDirectory directory(run::on_rank_zero(MPI_COMM_WORLD, [&] {
        place.emplace(run, "replay");
        std::filesystem::create_directory(place->path() / "state");
        return place->path().string();
    }));
    constexpr std::uint64_t number = 0;  // its copies for heirs are its own
    const auto evaluator = run::make_command_evaluator(config, *prepared, group, launcher, placement,
                                                       session.world_rank(), directory, number);
    if (!group.is_leader()) {
        evaluator->follow();
        return exit_done;
    }
    const std::vector<Epoch> again = run_lineage(*evaluator, config, lineage);
    evaluator->dismiss();
    const Comparison comparison = compare(again, lineage.back(), ranks);
    fmt::print("{}", comparison.text);
    return comparison.equal ? exit_done : exit_fault;
}

}  // namespace finch::app
