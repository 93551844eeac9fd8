#include "finch/store/resume.hpp"

#include "finch/base/error.hpp"
#include "finch/store/journal.hpp"

#include "store/samples.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <sys/stat.h>

using namespace finch;
using namespace finch::store;
using testing::contents;
using testing::put_contents;
using testing::TemporaryFolder;

namespace {

const search::Space space = samples::mnist_space();

/// A run directory that has an archive with `count` individuals.
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
        auto found = recover(directory, OnDamage::set_aside);
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

TEST_CASE("recover: an archive without journals gives back the population that was written") {
    const Run run(500);

    const Recovered recovered = run.recovered();

    CHECK(merged(recovered) == run.population);
    CHECK(recovered.space == space);
    CHECK(recovered.facts.config == samples::facts().config);
    CHECK(recovered.problems.empty());
}

TEST_CASE("the journals of all workers are merged with the archive, independent of order and repetitions") {
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

TEST_CASE("journals of workers after the first 256 are read") {
    Run run(2);
    run.directory.create(300);
    run.journal(1, {search::Result{ended(50)}});
    run.journal(299, {search::Result{ended(60)}});

    const search::Population population = merged(run.recovered());

    CHECK(population.find(ended(50).id) != nullptr);
    CHECK(population.find(ended(60).id) != nullptr);
}

TEST_CASE("recover does not load learning curves and metrics with Curves::leave") {
    const Run run(40);

    const auto recovered = recover(run.directory, OnDamage::set_aside, Curves::leave);

    REQUIRE(recovered);
    const search::Population population = merged(*recovered);
    CHECK(population.size() == 40);
    for (const auto& [id, individual] : population.individuals()) {
        search::Individual expected = *run.population.find(id);
        expected.curve.clear();
        expected.metrics.clear();
        CHECK(search::identical(individual, expected));
    }
}

TEST_CASE("events and reports of journals are merged with the archive; the latest report per worker counts") {
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

TEST_CASE("seconds_of_starts: the maximum of the stored duration and of the workers' reported durations") {
    store::ArchiveFacts facts;
    facts.starts = {{.restart = 0, .seconds = 40}, {.restart = 1, .seconds = 4}, {.restart = 2, .seconds = 7}};
    facts.reports[{0, 0}].up_seconds = 50;
    facts.reports[{0, 1}].up_seconds = 60;
    facts.reports[{1, 0}].up_seconds = 1e-5;  // this worker was stopped before its next report

    const std::map<std::uint32_t, double> expected{{0, 60}, {1, 4}, {2, 7}};
    CHECK(store::seconds_of_starts(facts) == expected);
}

TEST_CASE("a truncated last record of a journal is ignored; damage before the last record is reported and skipped") {
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

TEST_CASE("a journal of another run is reported and ignored") {
    const Run run(3);
    Journal(run.directory.journal(4), 1).write(search::encode(search::Result{ended(9)}, 1));

    const Recovered recovered = run.recovered();

    CHECK(merged(recovered).size() == 3);
    REQUIRE(recovered.problems.size() == 1);
    CHECK(recovered.problems[0].find("worker-00004.journal") != std::string::npos);
    CHECK(recovered.problems[0].find("another run") != std::string::npos);
}

TEST_CASE("a damaged archive is recovered from its predecessor and the journals") {
    Run run(30);
    run.journal(0, {search::Result{ended(40)}});
    write_archive(run.directory.archive(), space, samples::population(31, space), samples::facts());
    put_contents(run.directory.archive(), "rubbish");

    const Recovered recovered = run.recovered();

    run.population.merge(ended(40));
    CHECK(merged(recovered) == run.population);
    CHECK(recovered.problems.size() == 2);
}

TEST_CASE("recover returns nothing for a directory without a run, and throws each time if the archive is lost") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder / "run");
    CHECK_FALSE(recover(directory, OnDamage::set_aside));
    directory.create();
    CHECK_FALSE(recover(directory, OnDamage::set_aside));

    put_contents(directory.archive(), "rubbish");

    CHECK_THROWS_AS(static_cast<void>(recover(directory, OnDamage::set_aside)), FileError);
    CHECK_THROWS_AS(static_cast<void>(recover(directory, OnDamage::set_aside)), FileError);
}

TEST_CASE("no_run_text names the run that was meant: a similar name, the runs in a folder, the folder of a file") {
    const TemporaryFolder folder;
    const auto meant = [&](const char* path) {
        std::string text = no_run_text(RunDirectory(folder / path));
        const std::string before = "there is no run here (no population.h5)";
        REQUIRE(text.starts_with(before));
        return text.substr(before.size());
    };
    const auto hint = [&](const char* path) { return fmt::format("; did you mean {}?", (folder / path).string()); };
    for (const char* run : {"all/mnist", "all/cifar"}) {
        RunDirectory(folder / run).create();
        put_contents(RunDirectory(folder / run).archive(), "");
    }

    CHECK(meant("all/mnits") == hint("all/mnist"));
    CHECK(meant("all/mnist/population.h5") == hint("all/mnist"));
    CHECK(meant("all/mnist.yaml") == hint("all/mnist"));
    CHECK(meant("all") ==
          fmt::format("; did you mean {} or {}?", (folder / "all/cifar").string(), (folder / "all/mnist").string()));
    CHECK(meant("all/zebra").empty());
}

TEST_CASE("recover refuses a directory with files of an earlier run but without an archive") {
    const auto refused = [](const RunDirectory& directory, const char* why) {
        for (const OnDamage on_damage : {OnDamage::leave, OnDamage::set_aside}) {
            CHECK_THROWS_WITH_AS(static_cast<void>(recover(directory, on_damage)), doctest::Contains(why), ConfigError);
        }
        CHECK(directory.holds_a_run());
    };
    Run purged(2);
    purged.journal(3, {search::Result{ended(5)}});
    std::filesystem::remove(purged.directory.archive());
    refused(purged.directory, "population.h5 is missing, but an earlier run has left 1 file in");
    CHECK(std::filesystem::file_size(purged.directory.journal(3)) > 0);

    const TemporaryFolder folder;
    const RunDirectory snapshots(folder / "snapshots");
    snapshots.create(300);
    put_contents(snapshots.training(search::Id::make(0, 299, 1)), "a snapshot");
    refused(snapshots, "such as training-0.299.1.h5");

    const RunDirectory linked(folder / "linked");
    linked.create();
    std::filesystem::create_symlink(folder / "purged.h5", linked.archive());
    CHECK_THROWS_WITH_AS(static_cast<void>(recover(linked, OnDamage::set_aside)),
                         doctest::Contains("is a symbolic link to"), ConfigError);
    CHECK_THROWS_WITH_AS(static_cast<void>(recover_run(linked)), doctest::Contains("is a symbolic link"), ConfigError);

    std::filesystem::create_directory_symlink("purged", folder / "gone");
    CHECK_FALSE(recover(RunDirectory(folder / "gone"), OnDamage::leave));
    CHECK_THROWS_WITH_AS(static_cast<void>(recover_run(RunDirectory(folder / "gone"))),
                         doctest::Contains("gone is a symbolic link to purged"), ConfigError);
}

TEST_CASE("a directory that contains only empty journals, a lock and end notes holds no run") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder / "run");
    directory.create();
    put_contents(directory.journal(0), "");
    put_contents(directory.end_notes(), "a note");
    put_contents(directory.lock(), "");

    CHECK_FALSE(directory.holds_a_run());
    CHECK_FALSE(recover(directory, OnDamage::set_aside));
}

TEST_CASE("folders, FIFOs and links to devices that are named like journals are reported and skipped") {
    const Run run(5);
    run.journal(0, {search::Result{ended(7)}});
    const auto state = run.directory.state();
    std::filesystem::create_directory(state / "a.journal");
    REQUIRE(::mkfifo((state / "b.journal").c_str(), 0600) == 0);
    std::filesystem::create_symlink("/dev/zero", state / "c.journal");
    std::filesystem::create_symlink("nowhere", state / "d.journal");

    const Recovered recovered = run.recovered();

    CHECK(merged(recovered).find(ended(7).id) != nullptr);
    REQUIRE(recovered.problems.size() == 4);
    CHECK(recovered.problems[0].find("a folder") != std::string::npos);
    CHECK(recovered.problems[1].find("a FIFO") != std::string::npos);
    CHECK(recovered.problems[2].find("a device") != std::string::npos);
    CHECK(recovered.problems[3].find("d.journal") != std::string::npos);
}

TEST_CASE("recover reads only the first GiB of a huge journal and reports the journal") {
    const Run run(5);
    run.journal(0, {search::Result{ended(7)}});
    std::filesystem::resize_file(run.directory.journal(0), std::uintmax_t{1} << 40);

    const Recovered recovered = run.recovered();

    CHECK(merged(recovered).find(ended(7).id) != nullptr);
    CHECK(std::any_of(recovered.problems.begin(), recovered.problems.end(), [](const std::string& problem) {
        return problem.find("only its first GiB") != std::string::npos;
    }));
}

TEST_CASE("damaged files are left in place with OnDamage::leave and renamed with OnDamage::set_aside") {
    const Run run(5);
    write_archive(run.directory.archive(), space, run.population, samples::facts());
    testing::put_contents(run.directory.archive(), "rubbish");

    const auto read = recover(run.directory, OnDamage::leave);

    REQUIRE(read);
    CHECK(merged(*read).size() == 5);
    CHECK_FALSE(read->problems.empty());
    CHECK(testing::contents(run.directory.archive()) == "rubbish");

    CHECK(merged(run.recovered()).size() == 5);
    CHECK(testing::contents(run.directory.archive().string() + ".damaged") == "rubbish");
}

TEST_CASE("a record with impossible values is reported and skipped, and the other records are recovered") {
    struct Lie {
        const char* what;
        std::function<void(search::Individual&)> tell;
    };
    const double infinity = std::numeric_limits<double>::infinity();
    const std::vector<Lie> lies{
        {"has no id", [](auto& one) { one.id = {}; }},
        {"has 3 genes, the space 4", [](auto& one) { one.genome.pop_back(); }},
        {"has 5 genes, the space 4", [](auto& one) { one.genome.push_back(0); }},
        {"has a gene outside of the space", [](auto& one) { one.genome[2] = 1e300; }},
        {"has a gene outside of the space", [](auto& one) { one.genome[2] = std::nan(""); }},
        {"has a gene outside of the space", [](auto& one) { one.genome[0] = 2.5; }},
        {"has a gene outside of the space", [](auto& one) { one.genome[1] = 3; }},
        {"was born on the island -1", [](auto& one) { one.island = -1; }},
        {"was born on the island 2147483647", [](auto& one) { one.island = 2147483647; }},
        {"counts that cannot be", [](auto& one) { one.epochs = -1; }},
        {"counts that cannot be", [](auto& one) { one.progress = std::nan(""); }},
        {"has the time inf", [&](auto& one) { one.finished = infinity; }},
        {"has the time -1", [](auto& one) { one.born = -1; }},
        {"has the time 1e+300", [](auto& one) { one.started = 1e300; }},
        {"a learning curve", [](auto& one) { one.curve.push_back({.epoch = 0}); }},
        {"a metric",
         [](auto& one) {
             one.metrics.push_back({0, "top5", 1});
         }},
        {"a metric",
         [](auto& one) {
             one.metrics.push_back({1, std::string(65, 'x'), 1});
         }},
    };
    for (const Lie& lie : lies) {
        CAPTURE(lie.what);
        const Run run(20);
        search::Individual individual = ended(101);
        individual.loss = 0.5;
        lie.tell(individual);
        run.journal(0, {search::Result{individual}, search::Result{ended(102)}});

        const Recovered recovered = run.recovered();

        CHECK(recovered.problems.size() == 1);
        REQUIRE(!recovered.problems.empty());
        CHECK_MESSAGE(recovered.problems[0].find(lie.what) != std::string::npos, recovered.problems[0]);
        CHECK(recovered.problems[0].find(run.directory.journal(0).string()) == 0);
        search::Population expected = run.population;
        expected.merge(ended(102));
        CHECK(merged(recovered) == expected);
    }
}

TEST_CASE("moves, copies, reports and events with impossible values are reported and skipped") {
    const Run run(20);
    const search::Individual one = ended(101);
    search::WorkerReport report;
    report.worker = -1;

    run.journal(0, {search::Move{one, {1, 0, -1}}, search::Move{one, {1, -1, 0}}, search::Copy{one, -5}, report,
                    search::Event{std::nan(""), 0, "start", "now"}});
    const Recovered recovered = run.recovered();

    CHECK(recovered.problems.size() == 5);
    CHECK(merged(recovered) == run.population);
    CHECK(recovered.facts.events.size() == samples::facts().events.size());
}

TEST_CASE("recovered results with an infinite or NaN loss have no loss") {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double loss : {infinity, -infinity, std::nan("")}) {
        for (const auto outcome : {search::Outcome::pruned, search::Outcome::evaluated}) {
            Run run(20);
            search::Individual in_archive = ended(101);
            in_archive.outcome = outcome;
            in_archive.loss = loss;
            search::Individual in_journal = in_archive;
            in_journal.id = search::Id::make(0, 0, 900);
            run.population.merge(in_archive);
            write_archive(run.directory.archive(), space, run.population, samples::facts());
            run.journal(0, {search::Result{in_journal}});

            const Recovered recovered = run.recovered();

            const search::Population all = merged(recovered);
            CHECK(recovered.problems.empty());
            CHECK(all.evaluations() == run.population.evaluations() + 1);
            for (const search::Id id : {in_archive.id, in_journal.id}) {
                REQUIRE(all.find(id) != nullptr);
                CHECK(all.find(id)->outcome ==
                      (outcome == search::Outcome::pruned ? outcome : search::Outcome::diverged));
                CHECK(std::isnan(all.find(id)->loss));
                CHECK_FALSE(all.find(id)->problem.empty());
            }
        }
    }
}

TEST_CASE("adopt: rounding errors of a step, as earlier versions recorded them, are corrected") {
    const search::Space steps{{{"x", search::RealGene{-0.3, 0.3, search::Scale::linear, 0.1}}}};
    const Run run(0);
    search::Population population(search::ExchangeKind::none, 4);
    search::Individual one = ended(101);
    one.genome = {-5.55e-17};
    population.merge(one);
    write_archive(run.directory.archive(), steps, population, samples::facts());
    Recovered recovered = run.recovered();
    recovered.adopt(steps);
    CHECK(merged(recovered).find(one.id)->genome == search::Genome{0});
}

TEST_CASE("an individual with impossible values in the archive is reported and skipped") {
    const Run run(0);
    search::Population population = samples::population(20, space);
    search::Individual liar = ended(101);
    liar.epochs = -1;
    population.merge(liar);
    population.merge_membership(liar.id, 1);
    write_archive(run.directory.archive(), space, population, samples::facts());

    const Recovered recovered = run.recovered();

    CHECK(merged(recovered) == samples::population(20, space));
    REQUIRE(recovered.problems.size() == 1);
    CHECK(recovered.problems[0].find("population.h5: the individual 2.1.102 has counts that cannot be") !=
          std::string::npos);
}
