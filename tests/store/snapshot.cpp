#include "finch/store/snapshot.hpp"

#include "finch/base/files.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::store;
using testing::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

ModelFile at_epoch(std::int32_t epochs) {
    search::Individual individual;
    individual.id = search::Id::make(0, 0, 1);
    individual.epochs = epochs;
    return {individual, "", {}, 77};
}

std::vector<std::string> file_names(const TemporaryFolder& folder) {
    std::vector<std::string> names;
    for (const fs::path& path : list_folder(folder.path())) {
        names.push_back(path.filename().string());
    }
    return names;
}

}  // namespace

TEST_CASE("a snapshot keeps its predecessor, and remove() leaves no file") {
    const TemporaryFolder folder;
    Snapshot snapshot(folder / "a.h5", false);

    snapshot.write(at_epoch(1));
    CHECK(file_names(folder) == std::vector<std::string>{"a.h5"});
    snapshot.write(at_epoch(2));
    CHECK(file_names(folder) == std::vector<std::string>{"a.h5", "a.h5.previous"});
    std::vector<std::string> problems;
    const auto read = snapshot.read(problems);
    REQUIRE(read);
    CHECK(read->individual.epochs == 2);
    snapshot.remove();
    CHECK(fs::is_empty(folder.path()));

    snapshot.write(at_epoch(3));
    snapshot.remove();
    CHECK(fs::is_empty(folder.path()));
}

TEST_CASE(
    "the snapshot of an individual of this start is not looked for; that of an earlier start is read and removed") {
    const TemporaryFolder folder;
    { Snapshot(folder / "a.h5", false).write(at_epoch(4)); }
    for (const char* leftover : {"a.h5.previous", "a.h5.new", "a.h5.previous.new"}) {
        testing::put_contents(folder / leftover, "");
    }
    std::vector<std::string> problems;

    CHECK_FALSE(Snapshot(folder / "a.h5", false).read(problems));
    Snapshot earlier(folder / "a.h5", true);
    const auto read = earlier.read(problems);
    REQUIRE(read);
    CHECK(read->individual.epochs == 4);
    earlier.remove();

    CHECK(fs::is_empty(folder.path()));
}

TEST_CASE(
    "remove() after a failed write removes all files, and keeps the snapshot if its predecessor cannot be removed") {
    const TemporaryFolder folder;
    Snapshot snapshot(folder / "a.h5", false);
    snapshot.write(at_epoch(1));
    snapshot.write(at_epoch(2));

    ModelFile wrong = at_epoch(3);
    wrong.arrays.push_back({"a", {2}, std::vector<double>{1}});
    CHECK_THROWS_AS(snapshot.write(wrong), Error);
    testing::put_contents(folder / "a.h5.new", "half");
    snapshot.remove();
    CHECK(fs::is_empty(folder.path()));

    snapshot.write(at_epoch(1));
    snapshot.write(at_epoch(2));
    fs::remove(folder / "a.h5.previous");
    fs::create_directories(folder / "a.h5.previous" / "in the way");
    snapshot.remove();
    CHECK(fs::exists(folder / "a.h5"));
}
