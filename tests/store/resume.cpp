#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "finch/store/resume.hpp"

#include "finch/base/error.hpp"
#include "finch/store/journal.hpp"

#include "store/samples.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::store;
using testing::contents;
using testing::put_contents;
using testing::TemporaryFolder;

namespace {

const search::Space space = samples::mnist_space();

/// A run directory with an archive of `count` individuals.
class Run {
public:
    explicit Run(std::uint32_t count) : directory(folder / "run"), population(samples::population(count, space)) {
        directory.create();
        write_archive(directory.archive(), space, population, samples::facts());
    }
    void journal(int worker, const std::vector<search::Record>& records) const {
        Journal file(directory.journal(worker), samples::facts().run);
        for (const search::Record& record : records) {
            file.write(search::encode(record, samples::facts().run));
        }
    }
    Recovered recovered() const {
        auto found = recover(directory);
        REQUIRE(found);
        return std::move(*found);
    }

    TemporaryFolder folder;
    RunDirectory directory;
    search::Population population;
};

search::Population merged(const Recovered& recovered) {
    search::Population population(search::ExchangeKind::none, 4);
    recovered.merge_into(population);
    return population;
}

search::Individual ended(std::uint32_t number) {
    search::Individual individual = samples::individual(number, space);
    individual.outcome = search::Outcome::evaluated;
    return individual;
}

}  // namespace

TEST_CASE("an archive alone gives the population that it was written from") {
    const Run run(500);

    const Recovered recovered = run.recovered();

    CHECK(merged(recovered) == run.population);
    CHECK(recovered.space == space);
    CHECK(recovered.facts.config == samples::facts().config);
    CHECK(recovered.problems.empty());
}

TEST_CASE("the journals of all workers are merged with the archive, whatever their order and repetition") {
    Run run(20);
    const auto first = ended(100);
    const auto second = ended(200);
    const search::Home home{9, 1, 3};
    run.journal(0, {search::Started{samples::individual(100, space)}, search::Result{first}, search::Result{first}});
    run.journal(12, {search::Move{second, home}, search::Copy{first, 2}, search::Result{ended(0)}});

    const search::Population population = merged(run.recovered());

    run.population.merge(first);
    run.population.merge(second);
    run.population.merge(second.id, home);
    run.population.merge_membership(first.id, 2);
    run.population.merge(ended(0));
    CHECK(population == run.population);
}

TEST_CASE("journals of workers beyond the first 256 are read too") {
    Run run(2);
    run.directory.create(300);
    run.journal(1, {search::Result{ended(50)}});
    run.journal(299, {search::Result{ended(60)}});

    const search::Population population = merged(run.recovered());

    CHECK(population.find(ended(50).id) != nullptr);
    CHECK(population.find(ended(60).id) != nullptr);
}

TEST_CASE("learning curves stay on the disk where they are not wanted") {
    const Run run(40);

    const auto recovered = recover(run.directory, Curves::leave);

    REQUIRE(recovered);
    const search::Population population = merged(*recovered);
    CHECK(population.size() == 40);
    for (const auto& [id, individual] : population.individuals()) {
        search::Individual expected = *run.population.find(id);
        expected.curve.clear();
        CHECK(search::identical(individual, expected));
    }
}

TEST_CASE("events and reports of journals join the archive's, each once, the latest report of a worker") {
    const Run run(1);
    const search::Event old = samples::facts().events[1];
    const search::Event young{3.0, 2, "stop", "a signal"};
    search::WorkerReport later = samples::facts().reports.at({3, 0});
    later.time += 10;
    later.evaluations = 99;
    search::WorkerReport earlier = later;
    earlier.time -= 20;
    earlier.evaluations = 1;
    run.journal(0, {old, young, later, earlier});

    const Recovered recovered = run.recovered();

    REQUIRE(recovered.facts.events.size() == 4);
    CHECK(samples::same(recovered.facts.events[2], young));
    CHECK(recovered.facts.reports.size() == 2);
    CHECK(samples::same(recovered.facts.reports.at({3, 0}), later));
}

TEST_CASE("a torn end of a journal is cut off without a word, and damage before it is named and skipped") {
    const Run run(0);
    run.journal(0, {search::Result{ended(1)}, search::Result{ended(2)}, search::Result{ended(3)}});
    const auto path = run.directory.journal(0);
    std::string bytes = contents(path);
    bytes.resize(bytes.size() - 5);
    put_contents(path, bytes);
    run.journal(1, {search::Result{ended(11)}, search::Result{ended(12)}, search::Result{ended(13)}});
    std::string damaged = contents(run.directory.journal(1));
    damaged[damaged.size() / 2] ^= 1;
    put_contents(run.directory.journal(1), damaged);

    const Recovered recovered = run.recovered();

    CHECK(merged(recovered).size() == 4);
    REQUIRE(recovered.problems.size() == 1);
    CHECK(recovered.problems[0].find("worker-00001.journal") != std::string::npos);
    CHECK(contents(path) == bytes);
}

TEST_CASE("a journal of another run is named and left out") {
    const Run run(3);
    Journal(run.directory.journal(4), 1).write(search::encode(search::Result{ended(9)}, 1));

    const Recovered recovered = run.recovered();

    CHECK(merged(recovered).size() == 3);
    REQUIRE(recovered.problems.size() == 1);
    CHECK(recovered.problems[0].find("worker-00004.journal") != std::string::npos);
    CHECK(recovered.problems[0].find("another run") != std::string::npos);
}

TEST_CASE("a damaged archive is made good by its predecessor and the journals") {
    Run run(30);
    run.journal(0, {search::Result{ended(40)}});
    write_archive(run.directory.archive(), space, samples::population(31, space), samples::facts());
    put_contents(run.directory.archive(), "rubbish");

    const Recovered recovered = run.recovered();

    run.population.merge(ended(40));
    CHECK(merged(recovered) == run.population);
    CHECK(recovered.problems.size() == 2);
}

TEST_CASE("a directory without a run gives nothing; one whose archive is lost throws each time") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder / "run");
    CHECK_FALSE(recover(directory));
    directory.create();
    CHECK_FALSE(recover(directory));

    put_contents(directory.archive(), "rubbish");

    CHECK_THROWS_AS(static_cast<void>(recover(directory)), FileError);
    CHECK_THROWS_AS(static_cast<void>(recover(directory)), FileError);
}
