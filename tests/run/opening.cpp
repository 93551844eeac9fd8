#include "finch/run/opening.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/run/checks.hpp"
#include "finch/store/resume.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

namespace finch::run {
namespace {

constexpr const char* configuration = R"(
name: opening
search: {objective: {function: sphere}, budget: {hours: 3}}
)";

/// Opens a run and records its start, as every start does before the search.
OpenedRun open_on(const store::RunDirectory& directory, const config::Config& config, int nodes) {
    OpenedRun run = open_run(directory, config, {}, {}, "", 2, 1, nodes);
    record_start(run, directory, config);
    return run;
}

}  // namespace

TEST_CASE("hours and node-hours are summed over earlier starts, with the longest reported time of each") {
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
    facts.starts.back().seconds = 5;  // the time in the last archive; worker 1 reports a longer time
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

TEST_CASE("a start records its job, cluster, nodes, deadline and log") {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder / "run");
    config::Config config = config::parse(configuration, "test");
    config.log.path = (folder / "log").string();
    cluster::Slurm slurm;
    slurm.job_id = "4711";
    slurm.cluster = "juwels";
    slurm.node_list = "n[1-2]";
    slurm.end_time = 2e9;
    OpenedRun run = open_run(directory, config, {}, slurm, "", 2, 1, 2);
    record_start(run, directory, config);

    const store::Recovered recovered = store::recover_run(directory);

    REQUIRE(recovered.facts.starts.size() == 1);
    const store::Start& start = recovered.facts.starts.front();
    CHECK(start.job == "4711");
    CHECK(start.cluster == "juwels");
    CHECK(start.node_list == "n[1-2]");
    CHECK(start.log == config.log.path);
    CHECK(start.deadline == 2e9);
}

TEST_CASE("--fresh refuses a run that is in use, and renames a run directory that has no archive") {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder / "run");
    const config::Config config = config::parse(configuration, "test");
    RunOptions fresh;
    fresh.fresh = true;
    const auto begin_anew = [&] { return open_run(directory, config, fresh, {}, "", 1, 1, 1); };
    OpenedRun first = open_on(directory, config, 1);
    CHECK_THROWS_WITH_AS(static_cast<void>(begin_anew()), doctest::Contains("is in use by"), ConfigError);
    CHECK_FALSE(std::filesystem::exists(folder / "run.1"));
    first.lock.reset();
    std::filesystem::remove(directory.archive());
    std::filesystem::remove(directory.archive().string() + previous_suffix);
    testing::put_contents(directory.journal(0), "records");

    CHECK_THROWS_WITH_AS(static_cast<void>(open_run(directory, config, {}, {}, "", 1, 1, 1)),
                         doctest::Contains("population.h5 is missing"), ConfigError);
    CHECK(begin_anew().greeting.starts_with("a new run"));

    CHECK(testing::contents(folder / "run.1/state/worker-00000.journal") == "records");
}

TEST_CASE("record_start writes an archive and a predecessor that are equal but separate files") {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder / "run");
    const config::Config config = config::parse(configuration, "test");
    const std::filesystem::path previous = directory.archive().string() + previous_suffix;
    for (int start = 0; start < 2; ++start) {
        static_cast<void>(open_on(directory, config, 1));

        CHECK(testing::contents(directory.archive()) == testing::contents(previous));
        CHECK_FALSE(std::filesystem::equivalent(directory.archive(), previous));
    }
}

TEST_CASE("record_start changes no file if another job took the lock in the meantime") {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder / "run");
    const config::Config config = config::parse(configuration, "test");
    static_cast<void>(open_on(directory, config, 1));
    OpenedRun run = open_run(directory, config, {}, {}, "", 1, 1, 1);
    const std::string before = testing::contents(directory.archive());
    const std::filesystem::path journal = folder / "run/state/worker-00001.journal";
    testing::put_contents(journal, "of the other job");
    testing::put_contents(folder / "foreign", "job 2\nhost elsewhere\nprocess 12\nheartbeat abc\n");
    std::filesystem::rename(folder / "foreign", directory.lock());

    CHECK_THROWS_WITH_AS(record_start(run, directory, config), doctest::Contains("job 2"), store::LockLost);

    CHECK(testing::contents(directory.archive()) == before);
    CHECK(testing::contents(journal) == "of the other job");
}

TEST_CASE("a published model without an archive is renamed before a new run starts") {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder / "run");
    const config::Config config = config::parse(configuration, "test");
    directory.create(2);
    testing::put_contents(directory.best_model(), "an earlier run's");

    static_cast<void>(open_on(directory, config, 1));

    CHECK_FALSE(std::filesystem::exists(directory.best_model()));
    CHECK(testing::contents(directory.best_model().parent_path() / "best-of-an-earlier-run.h5") == "an earlier run's");
}

TEST_CASE("check_search refuses a space with more choice words than an archive can store") {
    const auto with_words = [](int words) {
        std::string text;
        for (int i = 0; i < words; ++i) {
            text += fmt::format("{}an-alternative-of-fifty-letters-and-a-number-at-end-{}", i == 0 ? "" : ", ", i);
        }
        return config::parse(
            std::string(configuration) + "\n", "test",
            {"search.objective={command: 'true {g}'}", fmt::format("search.space={{g: {{choice: [{}]}}}}", text)});
    };

    CHECK_NOTHROW(check_search(with_words(900), std::nullopt));
    CHECK_THROWS_WITH_AS(check_search(with_words(1300), std::nullopt),
                         doctest::Contains("use fewer genes, fewer choices or shorter words"), ConfigError);
}

}  // namespace finch::run
