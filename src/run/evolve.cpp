#include "finch/run/evolve.hpp"

#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/run/given.hpp"
#include "finch/run/run.hpp"

#include <utility>

namespace finch::run {

std::filesystem::path run_directory_of(const config::Config& config, const RunOptions& options) {
    if (options.run) {
        return *options.run;
    }
    std::string name = config.name;
    if (options.genes) {
        // A training with other genes has a run directory of its own.
        name += "-train";
        name +=
            options.genes->empty() ? "" : "-" + short_name(config.space, given_genome(config.space, *options.genes));
    }
    return std::filesystem::path("runs") / name;
}

int evolve(comm::Session& session, const RunOptions& options, process::Launcher launcher) {
    try {
        return Run(session, options, std::move(launcher)).search();
    } catch (const StoppedAtStart& stop) {
        if (session.world_rank() == 0) {
            complain(stop.why);
        }
        cluster::ignore_signals();
        return exit_stopped;
    }
}

int train_one(comm::Session& session, RunOptions options, process::Launcher launcher) {
    options.settings.insert(options.settings.end(),
                            {fmt::format("workers.ranks={}", session.world_size()), "workers.islands=1",
                             "workers.slots=1", "search.exchange={kind: none}", "search.islands=none",
                             "search.budget={evaluations: 1}", "search.final=none", "search.reuse=none"});
    return evolve(session, options, std::move(launcher));
}

}  // namespace finch::run
