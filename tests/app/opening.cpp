#include "finch/app/opening.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

namespace finch::app {
namespace {

constexpr const char* configuration = R"(
name: opening
search: {objective: {function: sphere}, budget: {hours: 3}}
)";

OpenedRun open_on(const store::RunDirectory& directory, const config::Config& config, int nodes) {
    return open_run(directory, config, {}, {}, "", 2, 1, nodes);
}

}  // namespace

TEST_CASE("hours and node hours of all earlier starts are summed; a start lasted as long as its longest report says") {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder / "run");
    const config::Config config = config::parse(configuration, "test");
    OpenedRun first = open_on(directory, config, 2);
    CHECK(first.before.hours == 0);
    CHECK(first.before.node_hours == 0);
    store::ArchiveFacts facts = first.facts;
    facts.state = RunState::stopped;
    facts.starts.front().seconds = 1800;
    store::write_archive(directory.archive(), config.space, first.population, facts);
    first.lock.reset();

    OpenedRun second = open_on(directory, config, 3);
    CHECK(second.before.hours == doctest::Approx(0.5));
    CHECK(second.before.node_hours == doctest::Approx(2 * 0.5));
    facts = second.facts;
    facts.state = RunState::stopped;
    facts.starts.back().seconds = 5;  // of the last archive; a worker reported after it
    for (const std::int32_t worker : {0, 1}) {
        search::WorkerReport report;
        report.restart = facts.restarts;
        report.worker = worker;
        report.up_seconds = worker == 1 ? 3600 : 60;
        facts.merge(report);
    }
    store::write_archive(directory.archive(), config.space, second.population, facts);
    second.lock.reset();
    const OpenedRun third = open_on(directory, config, 1);

    CHECK(third.before.hours == doctest::Approx(0.5 + 1));
    CHECK(third.before.node_hours == doctest::Approx(2 * 0.5 + 3 * 1));
}

}  // namespace finch::app
