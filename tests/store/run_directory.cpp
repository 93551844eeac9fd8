#include "finch/store/run_directory.hpp"

#include "finch/base/error.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::store;
using testing::put_contents;
using testing::TemporaryFolder;
namespace fs = std::filesystem;

TEST_CASE("the files have the documented names") {
    const RunDirectory directory("runs/mnist");

    CHECK(directory.config() == "runs/mnist/config.yaml");
    CHECK(directory.archive() == "runs/mnist/population.h5");
    CHECK(directory.journal(7) == "runs/mnist/state/worker-00007.journal");
    CHECK(directory.worker_best(123456) == "runs/mnist/state/482/worker-123456-best.h5");
    CHECK(directory.training(search::Id::make(0, 3, 17)) == "runs/mnist/state/training-0.3.17.h5");
    CHECK(directory.best_model() == "runs/mnist/models/best.h5");
}

TEST_CASE("each group of 256 workers has its own folder, and the first group uses state/ itself") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder / "run");

    directory.create(513);
    put_contents(directory.state() / "12", "no folder of workers");

    CHECK(directory.journal(255).parent_path() == directory.state());
    CHECK(directory.journal(256) == directory.state() / "001/worker-00256.journal");
    CHECK(directory.training(search::Id::make(2, 512, 1)) == directory.state() / "002/training-2.512.1.h5");
    put_contents(directory.journal(255), "");
    put_contents(directory.journal(256), "");
    put_contents(directory.journal(512), "");
    CHECK(directory.state_files() == std::vector<fs::path>{directory.state() / "001", directory.state() / "002",
                                                           directory.state() / "12", directory.journal(255),
                                                           directory.journal(256), directory.journal(512)});
}

TEST_CASE("create() makes the folders of a run, can be repeated, and makes no files") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder / "runs/a/b");

    directory.create();
    directory.create();

    CHECK(fs::is_directory(directory.state()));
    CHECK(fs::is_directory(directory.best_model().parent_path()));
    CHECK(fs::is_empty(directory.state()));
    CHECK_FALSE(directory.holds_a_run());
}

TEST_CASE("create throws ConfigError with path, reason and the option --run if the folder cannot be created") {
    const TemporaryFolder folder;
    put_contents(folder / "file", "in the way");

    CHECK_THROWS_WITH_AS(RunDirectory(folder / "file").create(), doctest::Contains("file"), ConfigError);
    CHECK_THROWS_WITH_AS(RunDirectory(folder / "file/below").create(), doctest::Contains("Not a directory"),
                         ConfigError);
    CHECK_THROWS_WITH_AS(RunDirectory("/proc/finch").create(), doctest::Contains("/proc/finch"), ConfigError);
    CHECK_THROWS_WITH_AS(RunDirectory("/proc/finch").create(), doctest::Contains("--run DIR"), ConfigError);
}

TEST_CASE(
    "create: missing permission is the user's mistake for a new run directory, and the storage's for an old one") {
    const TemporaryFolder folder;
    RunDirectory(folder / "old").create();
    fs::permissions(folder.path(), fs::perms(0755));
    fs::permissions(folder / "old", fs::perms(0555));
    const auto thrown = [&](const char* name) {
        return testing::without_privileges([&] {
            try {
                RunDirectory(folder / name).create();
                return 1;
            } catch (const StorageError&) {
                return 2;
            } catch (const ConfigError&) {
                return 3;
            }
        });
    };

    CHECK(thrown("old") == 2);
    CHECK(thrown("old/new") == 3);
}

TEST_CASE("holds_a_run is true if an archive, its predecessor or a damaged archive exists") {
    for (const char* name : {"population.h5", "population.h5.previous", "population.h5.damaged"}) {
        const TemporaryFolder folder;
        const RunDirectory directory(folder.path());
        CHECK_FALSE(directory.holds_a_run());

        put_contents(folder / name, "x");

        CHECK(directory.holds_a_run());
    }
}

TEST_CASE("move_aside renames the whole directory with the first free number") {
    const TemporaryFolder folder;
    for (int number = 1; number <= 2; ++number) {
        const RunDirectory directory(folder / "run");
        directory.create();
        put_contents(directory.archive(), std::to_string(number));

        CHECK(directory.move_aside() == folder / ("run." + std::to_string(number)));
        CHECK_FALSE(fs::exists(directory.root()));
    }
    CHECK(testing::contents(folder / "run.1/population.h5") == "1");
    CHECK(testing::contents(folder / "run.2/population.h5") == "2");

    fs::create_directory(folder / "run");
    CHECK(RunDirectory(folder / "run/").move_aside() == folder / "run.3");
    CHECK_THROWS_AS(RunDirectory(folder / "none").move_aside(), ConfigError);
}

TEST_CASE("move_aside of a symbolic link renames the target folder and creates an empty folder in its place") {
    const TemporaryFolder folder;
    fs::create_directories(folder / "scratch/one");
    fs::create_symlink("scratch/one", folder / "current");
    const RunDirectory directory(folder / "current");
    directory.create();
    put_contents(directory.archive(), "earlier");

    const fs::path aside = directory.move_aside();

    CHECK(aside == fs::canonical(folder / "scratch") / "one.1");
    CHECK(testing::contents(aside / "population.h5") == "earlier");
    CHECK(fs::is_symlink(folder / "current"));
    CHECK(fs::is_empty(folder / "scratch/one"));
    CHECK_NOTHROW(directory.create());
}

TEST_CASE("create reports a dangling symbolic link in any part of the path") {
    const TemporaryFolder folder;
    fs::create_symlink("purged", folder / "gone");
    fs::create_directory(folder / "run");
    fs::create_symlink(folder / "purged", folder / "run/state");

    for (const char* name : {"gone", "gone/below", "gone/", "run"}) {
        CAPTURE(name);
        CHECK_THROWS_WITH_AS(RunDirectory(folder / name).create(), doctest::Contains("is a symbolic link to "),
                             ConfigError);
    }
    CHECK_FALSE(fs::exists(folder / "purged"));
}

TEST_CASE("id_of_training parses the id in a snapshot's file name, and returns nothing for other names") {
    const RunDirectory directory("run");
    const search::Id id = search::Id::make(2, 3, 17);

    CHECK(RunDirectory::id_of_training(directory.training(id)) == id);
    for (const char* name :
         {"training-.h5", "training-2.3.h5", "training-2.3.17.h5.previous", "worker-00000-best.h5"}) {
        CHECK_FALSE(RunDirectory::id_of_training(directory.state() / name));
    }
}
