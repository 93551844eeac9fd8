#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/store/run_directory.hpp"

#include "support/temporary_folder.hpp"

#include <cmath>
#include <csignal>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace finch;
using namespace finch::store;
using testing::TemporaryFolder;

namespace {

/// Runs `body` in a process of its own; its result is the exit code.
int in_another_process(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(body());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

/// 0 where the lock is free for `job`, 1 where it is refused.
int try_lock(const RunDirectory& directory, const std::string& job, LockKind kind) {
    try {
        const RunLock lock(directory, job, kind);
        return 0;
    } catch (const ConfigError&) {
        return 1;
    }
}

/// A process that holds the lock until it is killed.
pid_t start_holder(const RunDirectory& directory, const std::string& job, LockKind kind) {
    int pipe_ends[2];
    REQUIRE(::pipe(pipe_ends) == 0);
    const pid_t holder = ::fork();
    if (holder == 0) {
        const RunLock lock(directory, job, kind);
        static_cast<void>(::write(pipe_ends[1], "x", 1));
        ::pause();
        ::_exit(0);
    }
    char ready = 0;
    CHECK(::read(pipe_ends[0], &ready, 1) == 1);
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
    return holder;
}

void kill_holder(pid_t holder) {
    ::kill(holder, SIGKILL);
    ::waitpid(holder, nullptr, 0);
}

/// A lock by heartbeat that a process on another host renewed `age` seconds ago.
void leave_foreign_lock(const RunDirectory& directory, const std::string& job, double age) {
    testing::put_contents(directory.lock(), fmt::format("job {}\nhost elsewhere\nprocess 12\nheartbeat abc\n", job));
    const double then = unix_seconds() - age;
    const timespec moment{static_cast<time_t>(std::floor(then)), 0};
    const timespec times[2]{moment, moment};
    ::utimensat(AT_FDCWD, directory.lock().c_str(), times, 0);
}

}  // namespace

TEST_CASE("a second process is refused while the first lives, is told who holds the run, and gets it after kill -9") {
    for (const LockKind kind : {LockKind::automatic, LockKind::heartbeat}) {
        const TemporaryFolder folder;
        const RunDirectory directory(folder.path());
        const pid_t holder = start_holder(directory, "4711", kind);

        CHECK(is_locked(directory));
        CHECK_THROWS_WITH_AS(RunLock(directory, "4712", kind), doctest::Contains("job 4711, process"), ConfigError);
        CHECK_THROWS_WITH_AS(RunLock(directory, "", LockKind::automatic),
                             doctest::Contains(std::to_string(holder).c_str()), ConfigError);
        CHECK(is_locked(directory));

        kill_holder(holder);
        CHECK_FALSE(is_locked(directory));
        CHECK(try_lock(directory, "4712", kind) == 0);
    }
}

TEST_CASE("a lock ends with its owner, and can be taken again") {
    for (const LockKind kind : {LockKind::automatic, LockKind::heartbeat}) {
        const TemporaryFolder folder;
        const RunDirectory directory(folder.path());
        CHECK_FALSE(is_locked(directory));

        for (int i = 0; i < 2; ++i) {
            const RunLock lock(directory, "", kind);
            CHECK(is_locked(directory));
        }

        CHECK_FALSE(is_locked(directory));
    }
}

TEST_CASE("looking at the lock from its own process does not end it") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    const RunLock lock(directory, "1");

    CHECK(is_locked(directory));
    CHECK(testing::contents(directory.lock()).find("job 1") == 0);

    CHECK(in_another_process([&] { return try_lock(directory, "2", LockKind::automatic); }) == 1);
    CHECK(in_another_process([&] { return is_locked(directory) ? 1 : 0; }) == 1);
}

TEST_CASE("a lock of another host counts while it gives a sign of life, whatever kind is asked for") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    for (const LockKind kind : {LockKind::automatic, LockKind::heartbeat}) {
        leave_foreign_lock(directory, "1", 30);
        CHECK(is_locked(directory));
        CHECK(try_lock(directory, "2", kind) == 1);
        CHECK(try_lock(directory, "", kind) == 1);

        leave_foreign_lock(directory, "1", 90);
        CHECK_FALSE(is_locked(directory));
        CHECK(try_lock(directory, "2", kind) == 0);
    }
}

TEST_CASE("a requeued job takes its own lock over at once") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    leave_foreign_lock(directory, "4711", 1);

    CHECK(try_lock(directory, "4711", LockKind::heartbeat) == 0);
}

TEST_CASE("who lost the lock hears of it at the next heartbeat") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    RunLock lock(directory, "1", LockKind::heartbeat);
    leave_foreign_lock(directory, "2", 0);

    CHECK_THROWS_WITH_AS(lock.heartbeat(), doctest::Contains("job 2"), ApiError);
}

TEST_CASE("a heartbeat renews the sign of life") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    RunLock lock(directory, "1", LockKind::heartbeat);
    const timespec long_ago[2]{{1000, 0}, {1000, 0}};
    ::utimensat(AT_FDCWD, directory.lock().c_str(), long_ago, 0);
    CHECK_FALSE(is_locked(directory));

    lock.heartbeat();

    CHECK(is_locked(directory));
}

TEST_CASE("a lock in a folder that is not there is the user's error") {
    const TemporaryFolder folder;

    CHECK_THROWS_AS(RunLock(RunDirectory(folder / "none"), ""), ConfigError);
    CHECK_FALSE(is_locked(RunDirectory(folder / "none")));
}
