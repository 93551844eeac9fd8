#include "finch/run/storage.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <vector>

namespace finch::run {

TEST_CASE("curves_kept lists the curves in memory that both the archive and its predecessor contain") {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder / "run");
    directory.create();
    store::RunLock lock(directory, "");
    const search::Space space;
    store::ArchiveFacts facts;
    facts.run = 5;
    FileArchive archive(directory, space, facts, lock, [](const search::Population&, const store::ArchiveFacts&) {});
    search::Individual one;
    one.id = search::Id::make(0, 0, 1);
    one.outcome = search::Outcome::evaluated;
    one.epochs = 2;
    one.curve.resize(2);
    search::Population population(search::ExchangeKind::none, 1);
    population.merge(one);

    CHECK(archive.write(population));
    CHECK(archive.curves_kept().empty());
    CHECK(archive.write(population));
    CHECK(archive.curves_kept() == std::vector{one.id});
    population.forget_curve(one.id);
    CHECK(archive.write(population));
    CHECK(archive.write(population));
    CHECK(archive.curves_kept().empty());

    std::vector<std::string> problems;
    const auto read = store::read_archive(directory.archive(), problems, OnDamage::leave);
    REQUIRE(read);
    CHECK(read->individuals.front().curve.size() == 2);
}

TEST_CASE("if the lock cannot be renewed, no archive is written, reports are kept and the run continues") {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder / "run");
    directory.create();
    store::LockOptions options;
    options.beat_seconds = 0;
    store::RunLock lock(directory, "", options);
    const search::Space space;
    FileArchive archive(directory, space, {}, lock, [](const search::Population&, const store::ArchiveFacts&) {});
    const search::Population population(search::ExchangeKind::none, 1);
    search::WorkerReport report;
    report.worker = 1;

    std::filesystem::rename(directory.lock(), folder / "away");  // simulates a temporary failure of the file server
    archive.report(report);
    CHECK_FALSE(archive.write(population));
    CHECK_FALSE(archive.is_current());
    std::filesystem::rename(folder / "away", directory.lock());
    archive.report(report);
    CHECK(archive.write(population));

    CHECK(archive.facts().reports.size() == 1);
    std::vector<std::string> problems;
    CHECK(store::read_archive(directory.archive(), problems, OnDamage::leave));
}

TEST_CASE("a heartbeat is due just before a new archive gets its final name") {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder / "run");
    directory.create();
    store::LockOptions options;
    options.beat_seconds = 0;
    store::RunLock lock(directory, "", options);
    const search::Space space;
    FileArchive archive(directory, space, {}, lock, [](const search::Population&, const store::ArchiveFacts&) {});
    search::Population population(search::ExchangeKind::none, 1);
    for (std::uint32_t number = 1; number <= 20000; ++number) {
        search::Individual one;
        one.id = search::Id::make(0, 0, number);
        population.merge(one);
    }

    CHECK(archive.write(population));

    CHECK(std::filesystem::last_write_time(directory.lock()) >= std::filesystem::last_write_time(directory.archive()));
}

}  // namespace finch::run
