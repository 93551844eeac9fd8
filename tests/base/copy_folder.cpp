#include "finch/base/copy_folder.hpp"

#include "finch/base/files.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <stdexcept>
#include <sys/stat.h>

using namespace finch;
using finch::testing::contents;
using finch::testing::put_contents;

namespace {

namespace fs = std::filesystem;

fs::path source_in(const testing::TemporaryFolder& folder) {
    fs::create_directories(folder / "from" / "empty");
    fs::create_directories(folder / "from" / "sub");
    put_contents(folder / "from" / "a", std::string(3000000, 'a'));
    put_contents(folder / "from" / "sub" / "b", "b");
    put_contents(folder / "outside", "linked");
    fs::create_symlink("../outside", folder / "from" / "link");
    return folder / "from";
}

}  // namespace

TEST_CASE("copy_folder copies all files and folders, and a later change of the source does not change the copy") {
    const testing::TemporaryFolder folder;
    const fs::path from = source_in(folder);
    const fs::path to = folder / "to";

    copy_folder(from, to);
    put_contents(from / "sub" / "b", "other");
    put_contents(folder / "outside", "other");

    CHECK(contents(to / "a") == std::string(3000000, 'a'));
    CHECK(contents(to / "sub" / "b") == "b");
    CHECK(fs::is_directory(to / "empty"));
    CHECK_FALSE(fs::is_symlink(to / "link"));
    CHECK(contents(to / "link") == "linked");
}

TEST_CASE("copy_folder refuses a missing folder, a file, a FIFO and a link to a folder") {
    const testing::TemporaryFolder folder;
    put_contents(folder / "file", "x");
    CHECK_THROWS_WITH_AS(copy_folder(folder / "fil", folder / "to"),
                         doctest::Contains("there is no such folder (did you mean"), StorageError);
    CHECK_THROWS_WITH_AS(copy_folder(folder / "file", folder / "to"), doctest::Contains("is no folder"), StorageError);
    CHECK_FALSE(fs::exists(folder / "to"));

    fs::create_directory(folder / "from");
    REQUIRE(::mkfifo((folder / "from" / "fifo").c_str(), 0600) == 0);
    CHECK_THROWS_WITH_AS(copy_folder(folder / "from", folder / "to"), doctest::Contains("it is a FIFO, not a file"),
                         StorageError);
    fs::remove(folder / "from" / "fifo");
    fs::create_symlink("..", folder / "from" / "circle");
    CHECK_THROWS_WITH_AS(copy_folder(folder / "from", folder / "to2"), doctest::Contains("it is a folder, not a file"),
                         StorageError);
}

TEST_CASE("replace_folder: the folder is the old or the new one, and remains of a kill are replaced") {
    const testing::TemporaryFolder folder;
    const fs::path from = source_in(folder);
    const fs::path to = folder / "to";
    fs::create_directories(folder / "to.new" / "remains");
    const auto replace = [&] { replace_folder(to, [&](const fs::path& beside) { copy_folder(from, beside); }); };

    replace();
    CHECK(contents(to / "sub" / "b") == "b");
    CHECK_FALSE(fs::exists(to / "remains"));
    CHECK_THROWS_AS(replace_folder(to,
                                   [&](const fs::path& beside) {
                                       copy_folder(from, beside);
                                       throw std::runtime_error("killed");
                                   }),
                    std::runtime_error);
    CHECK(contents(to / "sub" / "b") == "b");
    put_contents(from / "sub" / "b", "new");
    replace();
    CHECK(contents(to / "sub" / "b") == "new");
    CHECK_FALSE(fs::exists(folder / "to.new"));
}

TEST_CASE("remove_folder removes a folder, also if an earlier removal was interrupted; a missing folder is ignored") {
    const testing::TemporaryFolder folder;
    const fs::path from = source_in(folder);
    fs::create_directories(folder / "from.new" / "remains");

    remove_folder(from);
    remove_folder(from);

    CHECK_FALSE(fs::exists(from));
    CHECK_FALSE(fs::exists(folder / "from.new"));
}
