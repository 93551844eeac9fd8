#include "finch/app/read_run.hpp"

#include <utility>

namespace finch::app {

ReadRun read_run(const std::filesystem::path& run) {
    store::Recovered recovered = store::recover_run(store::RunDirectory(run));
    config::Config config = config::parse(recovered.facts.config, run.string());
    recovered.adopt(config.space);
    report::Competition competition{config.exchange.kind, config.costs, config.final_choice};
    return {std::move(recovered), std::move(config), std::move(competition)};
}

}  // namespace finch::app
