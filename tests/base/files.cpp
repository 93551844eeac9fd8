#include "finch/base/files.hpp"

#include "finch/base/replace.hpp"

#include "support/temporary_folder.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

using namespace finch;
using testing::TemporaryFolder;

namespace {

/// A function that fails `times` times with errno `code` and then returns 7. It counts its calls.
struct Failing {
    int code;
    int times;
    int calls = 0;
    int operator()() {
        errno = code;
        return calls++ < times ? -1 : 7;
    }
};

}  // namespace

TEST_CASE("retry repeats calls with temporary errors a bounded number of times, and calls with other errors never") {
    Failing interrupted{EINTR, 2};
    Failing stale{ESTALE, 3};
    Failing lasting{ESTALE, 1000};
    Failing full{ENOSPC, 1};

    CHECK(retry([&] { return interrupted(); }) == 7);
    CHECK(retry([&] { return stale(); }) == 7);
    CHECK(retry([&] { return lasting(); }) == -1);
    CHECK(errno == ESTALE);
    CHECK(retry([&] { return full(); }) == -1);

    CHECK(interrupted.calls == 3);
    CHECK(stale.calls == 4);
    CHECK(lasting.calls == 6);
    CHECK(full.calls == 1);
}

TEST_CASE("every error is the storage's, but those of names, and of permissions in a path that the user chose") {
    for (const int code : {ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, EEXIST}) {
        CHECK_FALSE(is_storage_failure(code));
    }
    for (const int code : {EACCES, EPERM, EROFS}) {
        CHECK(is_storage_failure(code));
        CHECK_FALSE(is_storage_failure_of_users_path(code));
    }
    for (const int code : {ENOSPC, EIO, ESHUTDOWN, ENOTCONN, ETIMEDOUT, EKEYEXPIRED}) {
        CHECK(is_storage_failure_of_users_path(code));
    }
    CHECK_THROWS_AS(check_storage_of("/proc/self/mem"), StorageError);  // EIO
    CHECK_NOTHROW(check_storage_of("/no/such/file"));
    CHECK_NOTHROW(check_storage_of("/"));
}

TEST_CASE("make_file replaces a symbolic link, and the link's target is not changed") {
    const TemporaryFolder folder;
    testing::put_contents(folder / "precious", "do not empty me");
    std::filesystem::create_symlink(folder / "precious", folder / "new");

    const FileDescriptor file = make_file(folder / "new");

    REQUIRE(file);
    CHECK(::write(file.get(), "x", 1) == 1);
    CHECK(testing::contents(folder / "precious") == "do not empty me");
    CHECK(testing::contents(folder / "new") == "x");
}

TEST_CASE("copy_to_previous replaces the predecessor atomically, and keeps the old one on failure") {
    const TemporaryFolder folder;
    const auto file = folder / "file";
    const auto previous = folder / "file.previous";
    const std::string large(3'000'000, 'x');
    testing::put_contents(file, large);
    testing::put_contents(previous, "old");

    copy_to_previous(file);
    CHECK(testing::contents(previous) == large);
    CHECK_FALSE(std::filesystem::equivalent(file, previous));

    std::filesystem::remove(file);
    CHECK_THROWS_AS(copy_to_previous(file), StorageError);
    CHECK(testing::contents(previous) == large);
    CHECK_FALSE(std::filesystem::exists(unfinished_name(previous)));
}

TEST_CASE("replace_file replaces the files that a kill left at any step of an earlier replacement") {
    const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
    const std::string old = "old";
    const std::string fresh = "fresh";
    for (const bool is_linked : {false, true}) {
        CAPTURE(is_linked);
        const TemporaryFolder folder;
        const auto file = folder / "file";
        const auto previous = folder / "file.previous";
        testing::put_contents(file, "first");
        testing::put_contents(unfinished_name(file), "half");
        testing::put_contents(unfinished_name(previous), "another");
        if (is_linked) {  // killed between the two renames
            std::filesystem::create_hard_link(file, previous);
        }

        replace_file(file, {bytes(old)});
        CHECK(testing::contents(file) == "old");
        CHECK(testing::contents(previous) == "first");
        replace_file(file, {bytes(fresh)});

        CHECK(testing::contents(file) == "fresh");
        CHECK(testing::contents(previous) == "old");
        CHECK_FALSE(std::filesystem::exists(unfinished_name(file)));
        CHECK_FALSE(std::filesystem::exists(unfinished_name(previous)));
    }
}

TEST_CASE("if `before` throws, replace_file leaves the old file and no other file") {
    const TemporaryFolder folder;
    testing::put_contents(folder / "file", "old");

    CHECK_THROWS_WITH_AS(replace_file(folder / "file", {}, {.before = [] { throw Error("no"); }}), "no", Error);

    CHECK(testing::contents(folder / "file") == "old");
    CHECK(list_folder(folder.path()).size() == 1);
}

TEST_CASE("open_regular refuses FIFOs, folders, devices and links with a reason, without blocking") {
    const TemporaryFolder folder;
    REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
    testing::put_contents(folder / "file", "x");
    std::filesystem::create_symlink(folder / "file", folder / "link");
    std::string problem;

    CHECK_FALSE(open_regular(folder / "fifo", O_RDONLY, problem));
    CHECK(problem == "it is a FIFO, not a file");
    CHECK_FALSE(open_regular(folder.path(), O_RDONLY, problem));
    CHECK(problem == "it is a folder, not a file");
    CHECK_FALSE(open_regular("/dev/zero", O_RDONLY, problem));
    CHECK(problem == "it is a device, not a file");
    CHECK_FALSE(open_regular(folder / "link", O_RDONLY | O_NOFOLLOW, problem));
    CHECK(problem == "it is a symbolic link, not a file");
    CHECK(open_regular(folder / "link", O_RDONLY, problem));
}

TEST_CASE("a missing folder is empty; is_there throws StorageError if a folder cannot be read") {
    const TemporaryFolder folder;

    CHECK(list_folder(folder / "none").empty());
    CHECK_FALSE(is_there(folder / "none"));
    std::filesystem::create_directory(folder / "closed");
    std::filesystem::permissions(folder / "closed", std::filesystem::perms::none);
    CHECK(testing::without_privileges([&] {
              try {
                  static_cast<void>(is_there(folder / "closed" / "file"));
                  return 1;
              } catch (const StorageError&) {
                  return 0;
              }
          }) == 0);
    CHECK_FALSE(is_there(folder / std::string(300, 'x')));
    std::filesystem::create_symlink("loop", folder / "loop");
    CHECK_FALSE(is_there(folder / "loop"));
    CHECK_FALSE(is_there(folder / "loop" / "file"));
}

TEST_CASE("similar_beside replaces each missing part by a name with the same stem or a similar spelling") {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder / "data" / "train");
    std::ofstream(folder / "data" / "tex.h5").put('x');
    std::ofstream(folder / "data" / "tez.hdf5").put('x');
    std::filesystem::create_symlink("gone", folder / "data" / "link");

    CHECK(similar_beside(folder / "data" / "tex.hdf5") == folder / "data" / "tex.h5");
    CHECK(similar_beside(folder / "data" / "tey.h5") == folder / "data" / "tex.h5");
    CHECK(similar_beside(folder / "dta" / "tex.h5") == folder / "data" / "tex.h5");
    CHECK(similar_beside(folder / "dta" / "tex.hdf5") == folder / "data" / "tex.h5");
    CHECK(similar_beside(folder / "data" / "tra") == folder / "data" / "train");
    CHECK(similar_beside(folder / "dta" / "zebra").empty());
    CHECK(similar_beside(folder / "data" / "zebra").empty());
    CHECK(similar_beside(folder / "data" / "link").empty());
    CHECK(similar_beside(folder / "data" / std::string(300, 'x')).empty());
    CHECK(similar_beside(folder / "data").empty());
}

TEST_CASE("path_hint names the similar path, or the home folder in place of ~") {
    const TemporaryFolder folder;
    std::ofstream(folder / "tex.h5").put('x');
    const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";

    CHECK(path_hint(folder / "tex.hdf5") == " (did you mean " + (folder / "tex.h5").string() + "?)");
    CHECK(path_hint(folder / "zebra").empty());
    CHECK(path_hint("~/data/tex.h5") == (home.empty() ? " (~ is not expanded: write the full path)"
                                                      : " (~ is not expanded: write " + home + "/data/tex.h5)"));
}
