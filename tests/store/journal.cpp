#include "finch/store/journal.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"

#include "store/samples.hpp"
#include "support/temporary_folder.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace finch;
using namespace finch::store;
using testing::contents;
using testing::TemporaryFolder;

namespace {

constexpr std::uint64_t run_number = 77;

Bytes record(std::uint32_t number, std::size_t text = 0) {
    search::Individual individual = samples::individual(number, samples::mnist_space());
    individual.problem = std::string(text, 'p');
    return search::encode(search::Result{individual}, run_number);
}

/// Returns the sequence numbers of the individuals in a journal, in the order of the file.
std::vector<std::uint32_t> numbers_in(const std::filesystem::path& path, std::vector<std::string>& problems) {
    const std::string text = contents(path);
    search::RecordReader reader(std::as_bytes(std::span(text)), run_number, path.string());
    std::vector<std::uint32_t> numbers;
    while (const auto found = reader.next()) {
        numbers.push_back(std::get<search::Result>(*found).individual.id.sequence() - 1);  // inverts record()
    }
    problems = reader.problems();
    return numbers;
}

std::vector<std::uint32_t> numbers_in(const std::filesystem::path& path) {
    std::vector<std::string> problems;
    auto numbers = numbers_in(path, problems);
    CHECK(problems.empty());
    return numbers;
}

std::vector<std::uint32_t> from_to(std::uint32_t first, std::uint32_t last) {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t number = first; number <= last; ++number) {
        numbers.push_back(number);
    }
    return numbers;
}

}  // namespace

TEST_CASE("each record is in the file as soon as write() returns") {
    const TemporaryFolder folder;
    Journal journal(folder / "j", run_number);

    for (std::uint32_t number = 1; number <= 50; ++number) {
        journal.write(record(number));
        CHECK(numbers_in(folder / "j").back() == number);
    }

    CHECK(numbers_in(folder / "j") == from_to(1, 50));
    CHECK(journal.written() == 50);
}

TEST_CASE("opening a journal of the same run empties it") {
    const TemporaryFolder folder;
    { Journal(folder / "j", run_number).write(record(1)); }

    const Journal journal(folder / "j", run_number);

    CHECK(contents(folder / "j").empty());
    CHECK(journal.written() == 0);
    CHECK_FALSE(std::filesystem::exists(folder / "j.damaged"));
}

TEST_CASE("opening a damaged journal or a journal of another run renames the file instead of overwriting it") {
    const TemporaryFolder folder;
    { Journal(folder / "other", run_number + 1).write(search::encode(search::Event{}, run_number + 1)); }
    testing::put_contents(folder / "rubbish", "not a record at all");

    const Journal first(folder / "other", run_number);
    const Journal second(folder / "rubbish", run_number);

    CHECK_FALSE(contents(folder / "other.damaged").empty());
    CHECK(contents(folder / "rubbish.damaged") == "not a record at all");
    CHECK(contents(folder / "other").empty());
}

TEST_CASE("if a second job reopens a journal, it receives no records of the first job, and sync() of that job throws") {
    const TemporaryFolder folder;
    Journal first(folder / "j", run_number);
    first.write(record(1));
    first.sync(true);
    Journal second(folder / "j", run_number);

    first.write(record(2));
    second.write(record(30));
    CHECK_THROWS_WITH_AS(first.sync(true), doctest::Contains("another job has begun it anew"), StorageError);
    second.write(record(31));
    second.sync(true);

    CHECK(numbers_in(folder / "j") == from_to(30, 31));
}

TEST_CASE("sync(false) syncs a record when it is sync_seconds old, and checks the journal's name every 10 s") {
    const TemporaryFolder folder;
    double time = 100;
    const JournalOptions slow{.sync_seconds = 30, .clock = [&time] { return time; }};
    const JournalOptions quick{.sync_seconds = 1, .clock = [&time] { return time; }};
    Journal first(folder / "j", run_number, slow);
    Journal second(folder / "k", run_number, quick);
    const Journal other_first(folder / "j", run_number);  // only a sync shows that another job has the name
    const Journal other_second(folder / "k", run_number);

    time = 105;
    first.write(record(1));
    second.write(record(1));
    time = 109;
    second.sync(false);  // the name was checked less than 10 s ago
    second.write(record(2));
    time = 109.5;
    second.sync(false);  // the record is not a second old
    time = 110;
    CHECK_THROWS_WITH_AS(second.sync(false), doctest::Contains("another job has begun it anew"), StorageError);
    first.write(record(2));
    time = 134.9;
    first.sync(false);
    time = 135;
    CHECK_THROWS_WITH_AS(first.sync(false), doctest::Contains("another job has begun it anew"), StorageError);
}

TEST_CASE("records that an archive contains need no sync") {
    const TemporaryFolder folder;
    Journal journal(folder / "j", run_number);
    journal.write(record(1));
    const Journal other(folder / "j", run_number);

    journal.forget(1);
    journal.sync(true);  // would report the other job

    journal.write(record(2));
    CHECK_THROWS_AS(journal.sync(true), StorageError);
}

TEST_CASE("forget() of all records empties the file, and later records are appended") {
    const TemporaryFolder folder;
    Journal journal(folder / "j", run_number);
    journal.write(record(1));
    journal.write(record(2));

    journal.forget(journal.written());
    CHECK(contents(folder / "j").empty());
    journal.write(record(3));

    CHECK(numbers_in(folder / "j") == from_to(3, 3));
    CHECK(journal.written() == 3);
}

TEST_CASE("forget() of more than a megabyte keeps exactly the later records, and new records are appended") {
    const TemporaryFolder folder;
    Journal journal(folder / "j", run_number);
    for (std::uint32_t number = 1; number <= 300; ++number) {
        journal.write(record(number, 10000));
    }

    journal.forget(250);
    CHECK(numbers_in(folder / "j") == from_to(251, 300));
    journal.write(record(301));
    CHECK(numbers_in(folder / "j") == from_to(251, 301));
    journal.forget(301);
    journal.write(record(302));

    CHECK(numbers_in(folder / "j") == from_to(302, 302));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()) ==
          1);
}

TEST_CASE("forget() with small, repeated or decreasing counts loses no later record") {
    const TemporaryFolder folder;
    Journal journal(folder / "j", run_number);
    for (std::uint32_t number = 1; number <= 10; ++number) {
        journal.write(record(number));
    }

    journal.forget(4);
    journal.forget(4);
    journal.forget(2);

    const auto numbers = numbers_in(folder / "j");
    const auto must = from_to(5, 10);
    CHECK(std::equal(must.begin(), must.end(), numbers.end() - 6));
    CHECK(journal.written() == 10);
}

TEST_CASE("write throws StorageError on a full disk, and the file ends with the last complete record") {
    const TemporaryFolder folder;
    Journal journal(folder / "j", run_number);
    for (std::uint32_t number = 1; number <= 5; ++number) {
        journal.write(record(number, 1000));
    }
    const auto size = std::filesystem::file_size(folder / "j");

    std::signal(SIGXFSZ, SIG_IGN);
    rlimit unlimited{};
    ::getrlimit(RLIMIT_FSIZE, &unlimited);
    const rlimit tight{size + 500, unlimited.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &tight);
    CHECK_THROWS_AS(journal.write(record(6, 1000)), StorageError);
    CHECK(std::filesystem::file_size(folder / "j") == size);
    ::setrlimit(RLIMIT_FSIZE, &unlimited);
    journal.write(record(7, 1000));

    CHECK(numbers_in(folder / "j") == std::vector<std::uint32_t>{1, 2, 3, 4, 5, 7});
    CHECK(journal.written() == 6);
}

TEST_CASE("forget() leaves the file unchanged if the remaining records cannot be written") {
    const TemporaryFolder folder;
    Journal journal(folder / "j", run_number);
    for (std::uint32_t number = 1; number <= 300; ++number) {
        journal.write(record(number, 10000));
    }

    std::signal(SIGXFSZ, SIG_IGN);
    rlimit unlimited{};
    ::getrlimit(RLIMIT_FSIZE, &unlimited);
    const rlimit tight{1000, unlimited.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &tight);
    journal.forget(200);
    ::setrlimit(RLIMIT_FSIZE, &unlimited);
    journal.write(record(301, 10));

    CHECK(numbers_in(folder / "j") == from_to(1, 301));
}

TEST_CASE("links, folders and FIFOs in place of a journal are renamed, and link targets are not changed") {
    const TemporaryFolder folder;
    testing::put_contents(folder / "precious", "do not empty me");
    std::filesystem::create_symlink(folder / "precious", folder / "link");
    std::filesystem::create_symlink(folder / "nowhere", folder / "dangling");
    std::filesystem::create_directories(folder / "folder" / "with more");
    REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);

    for (const char* name : {"link", "dangling", "folder", "fifo"}) {
        Journal(folder / name, run_number).write(record(1));

        CHECK(numbers_in(folder / name) == from_to(1, 1));
        CHECK(std::filesystem::exists(std::filesystem::symlink_status(folder / (std::string(name) + ".damaged"))));
    }

    CHECK(testing::contents(folder / "precious") == "do not empty me");
    CHECK_FALSE(std::filesystem::exists(folder / "nowhere"));
}

TEST_CASE("kill -9 at any moment of write() and forget() loses only records that were forgotten") {
    const TemporaryFolder folder;
    RandomStream random(9, Purpose::test);
    for (int round = 0; round < 25; ++round) {
        int pipe_ends[2];
        REQUIRE(::pipe(pipe_ends) == 0);
        const pid_t writer = ::fork();
        if (writer == 0) {
            Journal journal(folder / "j", run_number);
            for (std::uint32_t number = 1;; ++number) {
                journal.write(record(number, 3000));
                if (number % 500 == 0) {
                    journal.forget(number - 100);
                }
                static_cast<void>(::write(pipe_ends[1], &number, sizeof number));
            }
        }
        ::close(pipe_ends[1]);
        const double end = steady_seconds() + random.uniform(0.005, 0.03);
        std::uint32_t told = 0;
        while (steady_seconds() < end && ::read(pipe_ends[0], &told, sizeof told) == sizeof told) {
        }
        ::kill(writer, SIGKILL);
        ::waitpid(writer, nullptr, 0);
        while (::read(pipe_ends[0], &told, sizeof told) == sizeof told) {
        }
        ::close(pipe_ends[0]);

        const auto numbers = numbers_in(folder / "j");
        REQUIRE_FALSE(numbers.empty());
        CHECK(numbers == from_to(numbers.front(), numbers.back()));
        CHECK(numbers.back() >= told);
        // The writer may have written one more record, and called forget(), without reporting it.
        CHECK(numbers.front() <= (told + 1) / 500 * 500 + 1);
        std::filesystem::remove(folder / "j");
    }
}

TEST_CASE("prints the time to write one record") {
    const TemporaryFolder folder;
    Journal journal(folder / "j", run_number);
    const Bytes bytes = record(1);
    constexpr int count = 20000;

    const double begin = steady_seconds();
    for (int i = 0; i < count; ++i) {
        journal.write(bytes);
        journal.sync(false);
    }
    const double seconds = steady_seconds() - begin;
    const double sync_begin = steady_seconds();
    journal.sync(true);

    MESSAGE(fmt::format("a record of {} bytes: {:.2f} us; then a sync: {:.2f} ms", bytes.size(), 1e6 * seconds / count,
                        1e3 * (steady_seconds() - sync_begin)));
    CHECK(journal.written() == count);
}
