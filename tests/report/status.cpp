#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "finch/report/status.hpp"

#include "finch/base/error.hpp"
#include "finch/store/journal.hpp"
#include "finch/store/model_file.hpp"

#include "store/samples.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <memory>

using namespace finch;
using report::RunState;
using testing::TemporaryFolder;

namespace {

search::Individual bred(std::uint32_t number) {
    search::Individual individual;
    individual.id = search::Id::make(0, 0, number);
    return individual;
}

search::Individual evaluated(std::uint32_t number, double loss) {
    search::Individual individual = bred(number);
    individual.outcome = search::Outcome::evaluated;
    individual.loss = loss;
    return individual;
}

class Run {
public:
    Run() : directory(folder / "run") { directory.create(); }
    void write(const std::string& state) {
        store::ArchiveFacts facts = store::samples::facts();
        facts.state = state;
        store::write_archive(directory.archive(), {}, population, facts);
    }
    RunState state_after(const std::string& state) {
        write(state);
        return report::status(directory).state;
    }
    double progress() const { return report::status(directory).progress; }
    void save_training(std::uint32_t number, double share) {
        store::write_model(directory.training(bred(number).id),
                           {bred(number), "", {{"progress", {}, std::vector<double>{share}}}});
    }

    TemporaryFolder folder;
    store::RunDirectory directory;
    search::Population population{search::ExchangeKind::none, 1};
};

}  // namespace

TEST_CASE("the state of a run is complete, stopped early or interrupted by its archive, and running while locked") {
    Run run;

    CHECK(run.state_after("complete") == RunState::complete);
    CHECK(run.state_after("stopped") == RunState::stopped_early);
    CHECK(run.state_after("running") == RunState::interrupted);
    {
        const store::RunLock lock(run.directory, "");
        CHECK(run.state_after("complete") == RunState::running);
    }
    CHECK(run.state_after("complete") == RunState::complete);
}

TEST_CASE("a directory without a run is the user's error") {
    const Run run;

    CHECK_THROWS_WITH_AS(static_cast<void>(report::status(run.directory)), doctest::Contains("there is no run"),
                         ConfigError);
}

TEST_CASE("results in a journal count as those in the archive do") {
    Run run;
    run.population.merge(evaluated(1, 0.5));
    run.population.merge(bred(2));
    run.write("running");
    const std::uint64_t number = store::samples::facts().run;
    store::Journal journal(run.directory.journal(0), number);
    journal.write(search::encode(search::Result{evaluated(3, 0.25)}, number));

    const report::Status status = report::status(run.directory);

    CHECK(status.settled == 2);
    CHECK(status.unfinished == 1);
    CHECK(status.budget_evaluations == 200);
    REQUIRE(status.best);
    CHECK(status.best->loss == 0.25);
    CHECK(report::status_text(status) == "interrupted: " + run.directory.root().string() +
                                             ", 2 of 200 evaluations, 1 unfinished, best loss 0.25 (0.0.3)");
}

TEST_CASE("progress grows with every saved step of a training, and with its result once more") {
    Run run;
    run.population.merge(bred(1));
    run.population.merge(bred(2));
    run.write("running");
    std::vector<double> seen{run.progress()};

    run.save_training(1, 0.25);
    seen.push_back(run.progress());
    run.save_training(1, 0.5);
    seen.push_back(run.progress());
    run.save_training(2, 0.01);
    seen.push_back(run.progress());
    run.save_training(1, 1.0);
    seen.push_back(run.progress());
    run.population.merge(evaluated(1, 0.5));
    run.write("running");
    seen.push_back(run.progress());

    for (std::size_t i = 1; i < seen.size(); ++i) {
        CHECK(seen[i] > seen[i - 1]);
    }
    CHECK(seen.front() == 0);
    CHECK(seen[2] == doctest::Approx(0.5).epsilon(0.01));
}
