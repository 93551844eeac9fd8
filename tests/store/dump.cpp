#include "finch/base/random.hpp"
#include "finch/store/archive.hpp"

#include "store/samples.hpp"
#include "support/temporary_folder.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace finch;
using namespace finch::store;
using testing::TemporaryFolder;

namespace {

[[noreturn]] void write_for_ever(const std::filesystem::path& path, std::uint32_t first) {
    const search::Space space = samples::mnist_space();
    for (std::uint32_t count = first;; ++count) {
        write_archive(path, space, samples::population(count, space), samples::facts());
    }
}

}  // namespace

TEST_CASE("h5dump -d /individuals prints gene names, and choices, outcomes and operators as words") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    search::Individual one;
    one.id = search::Id::make(0, 3, 17);
    one.genome = {6, 2, 0.004, 0.75};
    one.outcome = search::Outcome::evaluated;
    one.bred_by = search::Operator::crossover;
    one.loss = 0.03125;
    search::Population population(search::ExchangeKind::none, 1);
    population.merge(one);

    write_archive(path, samples::mnist_space(), population, samples::facts());
    const auto dumped = testing::run("h5dump -d /individuals " + path.string());

    CHECK(dumped.code == 0);
    for (const char* name : {"\"conv_layers\"", "\"activation\"", "\"lr\"", "\"gamma\"", "\"loss\"", "\"parent_1\""}) {
        CHECK_MESSAGE(dumped.text.find(name) != std::string::npos, name);
    }
    const std::string data = dumped.text.substr(dumped.text.find("DATA {"));
    for (const char* value : {" 6,", " tanh,", " 0.004,", " 0.75,", " evaluated,", " crossover,", " 0.03125,"}) {
        CHECK_MESSAGE(data.find(value) != std::string::npos, value);
    }
    for (const char* other : {"curves", "problems", "memberships", "homes", "workers", "events", "space", "config"}) {
        CHECK_MESSAGE(testing::run("h5dump -d /" + std::string(other) + " " + path.string()).code == 0, other);
    }
}

ino_t inode_of(const std::filesystem::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

TEST_CASE("h5dump and read_archive can read the archive during repeated writes and after kill -9 of the writer") {
    const TemporaryFolder folder;
    const auto path = folder / "population.h5";
    const search::Space space = samples::mnist_space();
    RandomStream random(3, Purpose::test);
    std::size_t most = 100;
    write_archive(path, space, samples::population(100, space), samples::facts());

    for (int round = 0; round < 12; ++round) {
        const ino_t before = inode_of(path);
        const pid_t writer = ::fork();
        if (writer == 0) {
            write_for_ever(path, static_cast<std::uint32_t>(most + 1));
        }
        const auto dumped = testing::run("h5dump -d /individuals " + path.string());
        for (int wait = 0; inode_of(path) == before && wait < 6000; ++wait) {
            ::usleep(10000);  // waits until the writer has written an archive, even on a busy machine
        }
        ::usleep(static_cast<useconds_t>(random.below(20000)));
        ::kill(writer, SIGKILL);
        ::waitpid(writer, nullptr, 0);
        const auto after = testing::run("h5dump -d /individuals " + path.string());
        std::vector<std::string> problems;
        const auto archive = read_archive(path, problems, OnDamage::set_aside);

        CHECK(dumped.code == 0);
        CHECK(dumped.text.find("relu") != std::string::npos);
        CHECK(after.code == 0);
        CHECK(problems.empty());
        REQUIRE(archive);
        CHECK(archive->individuals.size() >= most);
        most = archive->individuals.size();
    }

    CHECK(most >= 112);  // every round writes at least one more individual
}
