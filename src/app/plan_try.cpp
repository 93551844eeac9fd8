// Implements finch plan --try.
#include "finch/app/plan.hpp"
#include "finch/base/format.hpp"
#include "finch/report/individual.hpp"
#include "finch/run/evolve.hpp"
#include "finch/run/on_every_rank.hpp"
#include "finch/run/programs.hpp"
#include "finch/run/progress.hpp"
#include "finch/store/resume.hpp"

#include "temporary_place.hpp"

#include <filesystem>

namespace finch::app {
namespace {

namespace fs = std::filesystem;

std::string tried_text(const fs::path& run, const search::Measure& measure, int code) {
    const store::RunDirectory directory(run);
    const store::Recovered recovered = store::recover_run(directory);
    search::Population population(search::ExchangeKind::none, 1);
    recovered.merge_into(population);
    std::string text;
    for (const auto& [id, individual] : population.individuals()) {
        text += report::individual_text(recovered, directory, id, measure);
    }
    return text + (code == exit_done    ? "the first individual gives a result; nothing of it is kept\n"
                   : code == exit_fault ? "the first individual gives no result; nothing of it is kept\n"
                                        : "stopped before the first individual ended; nothing of it is kept\n");
}

}  // namespace

int try_plan(comm::Session& session, const PlanOptions& options, process::Launcher launcher) {
    std::optional<TemporaryPlace> place;
    search::Measure measure;
    run::RunOptions trial;
    trial.config = options.config;
    trial.settings = options.settings;
    trial.run = run::on_rank_zero(MPI_COMM_WORLD, [&] {
        const bool has_plan = options.nodes || options.ranks_per_node;
        if (has_plan) {
            static_cast<void>(plan(options));
        }
        const config::Config config = load_to_plan(options);
        measure = config.measure;
        if (const auto* const command = std::get_if<config::CommandObjective>(&config.objective)) {
            trial.settings.emplace_back("search.objective.keep=all");
            if (!has_plan) {
                print_command_notes(run::prepare_programs(config, evaluate::read_templates(*command))->line);
            }
        }
        place.emplace(run::run_directory_of(config, {}), "--try");
        return place->path().string();
    });
    trial.settings.insert(trial.settings.end(), {"log={level: warning}"});
    trial.is_trial = true;
    const int code = run::train_one(session, std::move(trial), std::move(launcher));
    if (place) {
        fmt::print("{}", tried_text(place->path(), measure, code));
    }
    return code;
}

}  // namespace finch::app
