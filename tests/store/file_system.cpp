#include "finch/store/file_system.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::store;

TEST_CASE("a local folder writes, locks, syncs and links, and nothing is left in it") {
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

TEST_CASE("a folder that takes no files is told with the system's words") {
    const FileSystem found = try_file_system("/proc/self");

    CHECK(!found.writes);
    CHECK(!found.locks);
    CHECK(found.problem.find("open: ") == 0);
}

TEST_CASE("a folder that is not there is told, and not made") {
    const testing::TemporaryFolder folder;

    const FileSystem found = try_file_system(folder.path() / "nowhere");

    CHECK(!found.writes);
    CHECK(found.problem == "statfs: No such file or directory");
    CHECK(!std::filesystem::exists(folder.path() / "nowhere"));
}
