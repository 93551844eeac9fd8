#include "finch/cluster/end_notes.hpp"

#include "finch/cluster/signals.hpp"

#include "support/temporary_folder.hpp"

#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <functional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace finch;
using namespace finch::cluster;
using finch::testing::TemporaryFolder;

namespace {

/// Runs `body` in a child process that keeps notes as rank 3 of worker 1 in start 7. Returns its wait status.
int in_child(const std::filesystem::path& path, const std::function<void()>& body) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
            ::signal(signal, SIG_DFL);  // removes doctest's handlers
        }
        catch_signals(0);
        keep_end_notes(path, 3, 7, 1);
        body();
        std::_Exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
}

ExitCause note_after(const std::function<void()>& body) {
    const TemporaryFolder folder;
    in_child(folder / "notes", body);
    const auto notes = read_end_notes(folder / "notes", 7);
    CHECK(read_end_notes(folder / "notes", 6).empty());
    if (notes.empty()) {
        return ExitCause::none;
    }
    CHECK(notes.size() == 1);
    CHECK(notes[0].worker == 1);
    return notes[0].kind;
}

}  // namespace

TEST_CASE("end notes: a rank that receives a stop signal notes an external end, a killed rank notes nothing") {
    for (const int signal : {SIGTERM, SIGUSR2, SIGINT}) {
        CHECK(note_after([signal] { std::raise(signal); }) == ExitCause::external);
    }
    CHECK(note_after([] { std::raise(SIGKILL); }) == ExitCause::none);
    CHECK(note_after([] {}) == ExitCause::none);
}

TEST_CASE("end notes: a rank with a fatal signal notes its own fault, and that signal still ends it") {
    const TemporaryFolder folder;
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) {
        const int status = in_child(folder / "notes", [signal] { std::raise(signal); });

        CHECK(WIFSIGNALED(status));
        CHECK(WTERMSIG(status) == signal);
        const auto notes = read_end_notes(folder / "notes", 7);
        REQUIRE(notes.size() == 1);
        CHECK(notes[0].kind == ExitCause::own_fault);
        std::filesystem::remove(folder / "notes");
    }
}

TEST_CASE("end notes: the first note is kept, for example if a fault follows a stop signal") {
    CHECK(note_after([] {
              std::raise(SIGTERM);
              std::raise(SIGSEGV);
          }) == ExitCause::external);
    CHECK(note_after([] {
              note_end(ExitCause::own_fault);
              std::raise(SIGTERM);
          }) == ExitCause::own_fault);
}

TEST_CASE("read_end_notes: returns nothing for a missing path, a folder, a link and a FIFO") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "folder");
    std::filesystem::create_symlink("/dev/zero", folder / "link");
    REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);

    for (const char* name : {"none", "folder", "link", "fifo"}) {
        CHECK(read_end_notes(folder / name, 7).empty());
    }
}

TEST_CASE("keep_end_notes: throws for a folder, a link or a FIFO, and does not wait for a reader of the FIFO") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "folder");
    std::filesystem::create_symlink("/dev/zero", folder / "link");
    REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);

    for (const char* name : {"folder", "link", "fifo"}) {
        CHECK_THROWS_WITH_AS(keep_end_notes(folder / name, 0, 7, 1), doctest::Contains(name), ApiError);
    }
}
