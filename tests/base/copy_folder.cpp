#include "finch/base/copy_folder.hpp"

#include "finch/base/files.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <functional>
#include <stdexcept>
#include <sys/stat.h>
#include <utility>

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

/// Called once, by the next mkdir().
std::function<void()> at_next_mkdir;

}  // namespace

/// Replaces mkdir() of the C library, so that a test can change a folder while it is copied.
extern "C" int mkdir(const char* path, mode_t mode) noexcept {
    if (const auto change = std::exchange(at_next_mkdir, nullptr)) {
        change();
    }
    return ::mkdirat(AT_FDCWD, path, mode);
}

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

TEST_CASE("copy_folder copies permissions and times, also of more files than it syncs one by one") {
    const testing::TemporaryFolder folder;
    const fs::path from = source_in(folder);
    for (int i = 0; i < 50; ++i) {
        put_contents(from / "sub" / std::to_string(i), "x");
    }
    fs::permissions(from / "a", fs::perms(0750));
    fs::permissions(from / "sub", fs::perms(0700));
    const fs::file_time_type then = fs::file_time_type::clock::now() - std::chrono::hours(1);
    fs::last_write_time(from / "a", then);
    fs::last_write_time(from / "sub", then);

    copy_folder(from, folder / "to");

    CHECK(fs::status(folder / "to" / "a").permissions() == fs::perms(0750));
    CHECK(fs::status(folder / "to" / "sub").permissions() == fs::perms(0700));
    CHECK(fs::last_write_time(folder / "to" / "a") == fs::last_write_time(from / "a"));
    CHECK(fs::last_write_time(folder / "to" / "sub") == fs::last_write_time(from / "sub"));
    CHECK(list_folder(folder / "to" / "sub").size() == 51);
}

TEST_CASE("copy_folder refuses a folder that is removed, replaced or changed during the copy") {
    const testing::TemporaryFolder folder;
    const fs::path from = folder / "from";
    int copies = 0;
    const auto problem = [&](const std::function<void()>& change) -> std::string {
        const fs::path to = folder / std::to_string(++copies);
        fs::remove_all(from);
        fs::create_directory(from);
        at_next_mkdir = change;
        try {
            copy_folder(from, to);
        } catch (const StorageError& error) {
            return error.what();
        }
        return "";
    };
    const std::string begin = "cannot copy " + from.string() + ": ";

    CHECK(problem([] {}).empty());
    CHECK(problem([&] { fs::remove(from); }) == begin + "it was removed or replaced during the copy");
    CHECK(problem([&] {
              fs::remove(from);
              fs::create_directory(from);
          }) == begin + "it was removed or replaced during the copy");
    CHECK(problem([&] { put_contents(from / "new", "x"); }) ==
          begin + "names in it were added or removed during the copy");
}

TEST_CASE("copy_folder refuses a missing folder, a file, a FIFO, a link to a folder and a broken link") {
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
    CHECK_THROWS_WITH_AS(copy_folder(folder / "from", folder / "to2"),
                         doctest::Contains("it is a symbolic link to a folder; only files"), StorageError);
    fs::remove(folder / "from" / "circle");
    fs::create_symlink("nowhere", folder / "from" / "broken");
    CHECK_THROWS_WITH_AS(copy_folder(folder / "from", folder / "to3"),
                         doctest::Contains("broken is a symbolic link to nowhere, which is not there"), StorageError);
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
