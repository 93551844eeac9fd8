#include "finch/store/file_system.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::store;

TEST_CASE("try_file_system: a local folder supports writes, locks, syncs and hard links, and stays empty") {
    const testing::TemporaryFolder folder;

    const FileSystem found = try_file_system(folder.path());

    CHECK(found.writes);
    CHECK(found.locks);
    CHECK(found.syncs);
    CHECK(found.hard_links);
    CHECK(found.problem == "");
    CHECK(found.free_bytes > 0);
    CHECK(found.sync_seconds > 0);
    CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("try_file_system: for a folder that is not writable, `problem` contains the failed call") {
    const FileSystem found = try_file_system("/proc/self");

    CHECK(!found.writes);
    CHECK(!found.locks);
    CHECK(found.problem.find("open: ") == 0);
}

TEST_CASE("try_file_system: a missing folder is reported and not created") {
    const testing::TemporaryFolder folder;

    const FileSystem found = try_file_system(folder.path() / "nowhere");

    CHECK(!found.writes);
    CHECK(found.problem == "statfs: No such file or directory");
    CHECK(!std::filesystem::exists(folder.path() / "nowhere"));
}
