#include "finch/app/read_run.hpp"

#include <utility>

namespace finch::app {

ReadRun read_run(const std::filesystem::path& run) {
    const store::RunDirectory directory(run);
    store::Recovered recovered = store::recover_run(directory);
    recovered.facts.state = report::state_of(directory, recovered.facts.state);
    config::Config config = config::parse(recovered.facts.config, run.string());
    recovered.adopt(config.space);
    report::Competition competition{config.exchange.kind, config.costs, config.final_choice, config.measure};
    return {std::move(recovered), std::move(config), std::move(competition)};
}

report::Status status_of(const std::filesystem::path& run) {
    report::Status status = report::status(store::RunDirectory(run));
    status.measure = config::measure_of(status.config);
    return status;
}

}  // namespace finch::app
