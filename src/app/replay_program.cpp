#include "finch/app/replay_program.hpp"

#include "finch/app/comparison.hpp"
#include "finch/app/on_every_rank.hpp"
#include "finch/app/programs.hpp"
#include "finch/app/startup.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/run_state.hpp"
#include "finch/evaluate/command_evaluator.hpp"
#include "finch/search/population.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace finch::app {
namespace {

/// As it was when it was about to be evaluated.
search::Individual unevaluated(const search::Individual& recorded) {
    search::Individual individual;
    individual.id = recorded.id;
    individual.island = recorded.island;
    individual.generation = recorded.generation;
    individual.genome = recorded.genome;
    return individual;
}

/// A new folder below which it is evaluated: another replay of it may be on its way.
store::RunDirectory make_place(const std::filesystem::path& run, search::Id id) {
    return store::RunDirectory(on_rank_zero(MPI_COMM_WORLD, [&] {
        std::error_code failure;
        std::filesystem::create_directories(run / "replays", failure);
        std::filesystem::path place = run / "replays" / to_text(id);
        for (int number = 2; !failure && !std::filesystem::create_directory(place, failure); ++number) {
            place = run / "replays" / fmt::format("{}-{}", to_text(id), number);
        }
        if (!failure) {
            std::filesystem::create_directory(place / "evaluations", failure);
        }
        if (failure) {
            throw ConfigError(
                fmt::format("{} cannot be made: {}; a replay needs a folder there", place.string(), failure.message()));
        }
        return place.string();
    }));
}

/// Leader only.
search::Individual evaluate_again(const config::Config& config, evaluate::Programs& programs, const comm::Group& group,
                                  const search::Individual& recorded) {
    const search::Population nobody(search::ExchangeKind::none, 1);
    evaluate::CommandEvaluator evaluator(
        config, programs, group, [&nobody]() -> const search::Population& { return nobody; }, [] { return 0.0; });
    evaluator.start(unevaluated(recorded));
    search::Individual again;
    while (!evaluator.idle()) {
        for (search::Individual& ended : evaluator.advance()) {
            again = std::move(ended);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    evaluator.dismiss();
    return again;
}

}  // namespace

int replay_program(comm::Session& session, config::Config config, const search::Individual& recorded,
                   const std::string& fingerprint, const std::filesystem::path& run, process::Launcher launcher,
                   double tolerance) {
    config.workers.ranks = session.world_size();
    config.workers.islands = 1;
    config.workers.island_sizes.clear();
    config.workers.slots = 1;
    config.pruning = search::NoPruning{};
    std::get<config::CommandObjective>(config.objective).keep = config::Keep::all;
    if (recorded.outcome == search::Outcome::unfinished) {
        throw ConfigError(fmt::format("{} has not been evaluated yet", to_text(recorded.id)));
    }
    if (!(tolerance >= 0)) {
        throw ConfigError(fmt::format("--tolerance {}: accepted: a share of 0 or more", tolerance));
    }
    const auto prepared = prepare_programs_everywhere(config);
    if (prepared->fingerprint != fingerprint) {
        throw ConfigError(
            "search.objective.files: the templates here are others than the run's; accepted: those of the run, in the "
            "folder in which it was started");
    }
    const bool is_zero = session.world_rank() == 0;
    if (is_zero && recorded.ranks != session.world_size()) {
        spdlog::warn("{} was evaluated on {} ranks, now on {}", to_text(recorded.id), recorded.ranks,
                     session.world_size());
    }
    const Placement placement =
        place_ranks(session, config, cluster::Slurm::read(cluster::Environment::of_this_process()));
    comm::Group group(MPI_COMM_WORLD, 0, session.world_rank(), config.workers.timeout_seconds);
    group.sleep_while_waiting();
    const store::RunDirectory place = make_place(run, recorded.id);
    const auto programs = make_programs(config, *prepared, group, launcher, placement, session.world_rank(), place);
    if (!group.is_leader()) {
        programs->follow();
        return exit_done;
    }
    const search::Individual again = evaluate_again(config, *programs, group, recorded);
    const Comparison comparison = compare_reports(again, recorded, tolerance);
    fmt::print("{}its output: {}\n", comparison.text, place.evaluation_file(recorded.id, "output").string());
    return comparison.equal ? exit_done : exit_fault;
}

}  // namespace finch::app
