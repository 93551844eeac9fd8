#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/run_directory.hpp"

#include "support/temporary_folder.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <memory>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace finch;
using namespace finch::store;
using testing::TemporaryFolder;

namespace {

/// Runs `body` in a forked process. Returns the exit code of this process, which is the result of `body`.
int in_another_process(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(body());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

/// Returns 0 if `job` gets the lock, and 1 if the lock is refused.
int try_lock(const RunDirectory& directory, const std::string& job, LockKind kind) {
    try {
        const RunLock lock(directory, job, LockOptions{kind});
        return 0;
    } catch (const ConfigError&) {
        return 1;
    }
}

/// Starts a process that holds the lock until it is killed.
pid_t start_holder(const RunDirectory& directory, const std::string& job, LockKind kind) {
    int pipe_ends[2];
    REQUIRE(::pipe(pipe_ends) == 0);
    const pid_t holder = ::fork();
    if (holder == 0) {
        const RunLock lock(directory, job, LockOptions{kind});
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

/// Sets the time of the last heartbeat to `age` seconds ago.
void set_age(const RunDirectory& directory, double age) {
    const double then = unix_seconds() - age;
    const timespec moment{static_cast<time_t>(std::floor(then)), 0};
    const timespec times[2]{moment, moment};
    ::utimensat(AT_FDCWD, directory.lock().c_str(), times, 0);
}

/// Creates the lock file of a process on another host. Its last heartbeat was `age` seconds ago.
void leave_foreign_lock(const RunDirectory& directory, const std::string& job, double age) {
    const auto beside = directory.root() / "foreign";
    testing::put_contents(beside, fmt::format("job {}\nhost elsewhere\nprocess 12\nheartbeat abc\n", job));
    std::filesystem::rename(beside, directory.lock());
    set_age(directory, age);
}

}  // namespace

TEST_CASE("a lock is refused while its owner is alive, and free after kill -9; the message names the owner") {
    for (const LockKind kind : {LockKind::automatic, LockKind::heartbeat}) {
        const TemporaryFolder folder;
        const RunDirectory directory(folder.path());
        const pid_t holder = start_holder(directory, "4711", kind);

        CHECK(is_locked(directory));
        CHECK_THROWS_WITH_AS(RunLock(directory, "4712", LockOptions{kind}), doctest::Contains("job 4711, process"),
                             ConfigError);
        CHECK_THROWS_WITH_AS(RunLock(directory, ""), doctest::Contains(std::to_string(holder).c_str()), ConfigError);
        CHECK(is_locked(directory));

        kill_holder(holder);
        CHECK_FALSE(is_locked(directory));
        CHECK(try_lock(directory, "4712", kind) == 0);
    }
}

TEST_CASE("the destructor of a RunLock releases the lock, and the lock can be acquired again") {
    for (const LockKind kind : {LockKind::automatic, LockKind::heartbeat}) {
        const TemporaryFolder folder;
        const RunDirectory directory(folder.path());
        CHECK_FALSE(is_locked(directory));

        for (int i = 0; i < 2; ++i) {
            const RunLock lock(directory, "", LockOptions{kind});
            CHECK(is_locked(directory));
        }

        CHECK_FALSE(is_locked(directory));
    }
}

TEST_CASE("is_locked in the owner's process does not release the lock") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    const RunLock lock(directory, "1");

    CHECK(is_locked(directory));
    CHECK(testing::contents(directory.lock()).find("job 1") == 0);

    CHECK(in_another_process([&] { return try_lock(directory, "2", LockKind::automatic); }) == 1);
    CHECK(in_another_process([&] { return is_locked(directory) ? 1 : 0; }) == 1);
}

TEST_CASE("a lock of another host is held while its file changes, and is free after a minute without changes") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    for (const LockKind kind : {LockKind::automatic, LockKind::heartbeat}) {
        for (const double age : {0.0, 30.0, 90.0, 1e6, -30.0, -7200.0}) {
            CAPTURE(age);
            leave_foreign_lock(directory, "1", age);
            int looks = 0;
            const LockOptions beating{kind, {}, [&](double) {
                                          if (++looks % 10 == 0) {
                                              set_age(directory, age + looks);
                                          }
                                      }};
            CHECK(is_locked(directory, beating));
            CHECK_THROWS_WITH_AS(RunLock(directory, "2", beating), doctest::Contains("job 1, process 12 on elsewhere"),
                                 ConfigError);
            CHECK_THROWS_AS(RunLock(directory, "", beating), ConfigError);

            double waited = 0;
            const LockOptions silent{kind, {}, [&](double seconds) { waited += seconds; }};
            CHECK_FALSE(is_locked(directory, silent));
            CHECK(waited < 30);
            const RunLock lock(directory, "2", silent);
            CHECK(waited > 60);
        }
    }
}

TEST_CASE("are_locked watches many locks concurrently") {
    const TemporaryFolder folder;
    std::vector<RunDirectory> directories;
    for (int run = 0; run < 100; ++run) {
        directories.emplace_back(folder / std::to_string(run));
        std::filesystem::create_directory(directories.back().root());
        leave_foreign_lock(directories.back(), "1", 10);
    }
    double waited = 0;
    const LockOptions options{LockKind::automatic, {}, [&](double seconds) {
                                  waited += seconds;
                                  set_age(directories[7], waited);
                              }};

    const std::vector<bool> locked = are_locked(directories, options);

    CHECK(waited < 30);
    CHECK(std::count(locked.begin(), locked.end(), true) == 1);
    CHECK(locked[7]);
}

TEST_CASE("a run directory with a copied lock file is not locked, although the process in the file exists") {
    const TemporaryFolder folder;
    const RunDirectory original(folder / "run");
    const RunDirectory copy(folder / "copy");
    original.create();
    copy.create();
    const pid_t holder = start_holder(original, "", LockKind::automatic);
    std::filesystem::copy_file(original.lock(), copy.lock());

    CHECK(are_locked({original, copy}) == std::vector{true, false});
    CHECK(try_lock(original, "", LockKind::automatic) == 1);
    CHECK(try_lock(copy, "", LockKind::automatic) == 0);
    kill_holder(holder);
}

TEST_CASE("a lock of another machine with an equal host name is judged by heartbeat, not by process number") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    char host[256] = {};
    REQUIRE(::gethostname(host, sizeof host - 1) == 0);
    const auto leave_lock = [&](const std::string& machine) {
        testing::put_contents(folder / "foreign",
                              fmt::format("job 1\nhost {}\n{}process 999999999\nheartbeat abc\n", host, machine));
        std::filesystem::rename(folder / "foreign", directory.lock());
    };
    int looks = 0;
    const LockOptions beating{LockKind::automatic, {}, [&](double) { set_age(directory, ++looks); }};

    leave_lock("machine of another boot\n");
    CHECK(is_locked(directory, beating));
    CHECK_THROWS_AS(RunLock(directory, "2", beating), ConfigError);
    leave_lock("");  // a lock file without a machine line, as earlier versions wrote it
    CHECK_FALSE(is_locked(directory, beating));
}

TEST_CASE("if file locks work only within a node, the heartbeat refuses a job on another node") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    RunLock first(directory, "1", LockOptions{LockKind::automatic, "n1", {}});
    // On the other node, no fcntl lock is visible.
    const LockOptions elsewhere{LockKind::heartbeat, "n2", [&](double) { first.renew(); }};

    CHECK_THROWS_WITH_AS(RunLock(directory, "2", elsewhere), doctest::Contains("job 1, process"), ConfigError);
    CHECK_THROWS_WITH_AS(RunLock(directory, "", elsewhere), doctest::Contains("on n1"), ConfigError);
}

TEST_CASE("the next start of the same job waits until the dead node's heartbeat expires, then takes the lock") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    leave_foreign_lock(directory, "4711", 1);
    int looks = 0;
    const auto pause = [&](double) {
        if (++looks == 20) {
            leave_foreign_lock(directory, "4711", 90);
        }
    };

    RunLock lock(directory, "4711", LockOptions{LockKind::automatic, {}, pause});

    CHECK(looks >= 20);
    lock.renew();
    CHECK(is_locked(directory));
}

TEST_CASE("an fcntl lock of a dead node is taken over only by the same job") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    // This lock simulates the lock of a dead node, which the file server has not released yet.
    RunLock dead(directory, "4711", LockOptions{LockKind::automatic, "n1", {}});
    int looks = 0;
    const auto pause = [&](double) {
        if (++looks == 5) {
            set_age(directory, 90);
        }
    };
    set_age(directory, 90);
    CHECK(try_lock(directory, "2", LockKind::automatic) == 1);
    set_age(directory, 0);

    RunLock lock(directory, "4711", LockOptions{LockKind::automatic, "n2", pause});

    CHECK(looks >= 5);
    lock.renew();
    CHECK_THROWS_AS(dead.renew(), LockLost);
    CHECK(try_lock(directory, "2", LockKind::automatic) == 1);
}

TEST_CASE("a second step of a job is refused while the first step renews the heartbeat on another node") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    RunLock first(directory, "4711", LockOptions{LockKind::automatic, "n1", {}});
    double waited = 0;
    const auto pause = [&](double seconds) {
        waited += seconds;
        first.renew();
    };

    CHECK_THROWS_WITH_AS(RunLock(directory, "4711", LockOptions{LockKind::automatic, "n2", pause}),
                         doctest::Contains("job 4711"), ConfigError);

    CHECK(waited > 90);
    CHECK_NOTHROW(first.renew());
}

TEST_CASE("if two jobs acquire a free lock concurrently, the last writer gets it and the first is refused") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    const auto pause = [&](double) { leave_foreign_lock(directory, "2", 0); };  // after the write, before the check

    CHECK_THROWS_WITH_AS(RunLock(directory, "1", LockOptions{LockKind::automatic, "n1", pause}),
                         doctest::Contains("job 2"), ConfigError);

    CHECK(testing::contents(directory.lock()).find("job 2") == 0);
}

TEST_CASE("renew throws LockLost if another job took the lock; the destructor does not remove the new lock") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    {
        RunLock lock(directory, "1");
        leave_foreign_lock(directory, "2", 0);

        CHECK_THROWS_WITH_AS(lock.renew(), doctest::Contains("job 2"), LockLost);
    }
    CHECK(testing::contents(directory.lock()).find("job 2") == 0);
}

TEST_CASE("an archive is discarded if another job takes the lock during the write") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    const search::Space space;
    const search::Population population(search::ExchangeKind::none, 1);
    RunLock lock(directory, "1");
    write_archive(directory.archive(), space, population, {}, [&] { lock.renew(); });
    const std::string before = testing::contents(directory.archive());

    const auto confirm = [&] {
        CHECK(std::filesystem::exists(directory.archive().string() + ".new"));
        leave_foreign_lock(directory, "2", 0);
        lock.renew();
    };
    CHECK_THROWS_AS(write_archive(directory.archive(), space, population, {}, confirm), LockLost);

    CHECK_FALSE(std::filesystem::exists(directory.archive().string() + ".new"));
    CHECK_FALSE(std::filesystem::exists(directory.archive().string() + previous_suffix));
    CHECK(testing::contents(directory.archive()) == before);
}

TEST_CASE("renew throws StorageError if the lock file is missing") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    RunLock lock(directory, "1");
    std::filesystem::remove(directory.lock());

    CHECK_THROWS_AS(lock.renew(), StorageError);
}

TEST_CASE("the owner keeps its lock by renewing the heartbeat, with and without fcntl locks") {
    for (const LockKind kind : {LockKind::automatic, LockKind::heartbeat}) {
        const TemporaryFolder folder;
        const RunDirectory directory(folder.path());
        RunLock lock(directory, "1", LockOptions{kind, "n1", {}});
        const LockOptions elsewhere{LockKind::heartbeat, "n2", [&](double) { lock.renew(); }};

        CHECK_THROWS_AS(RunLock(directory, "2", elsewhere), ConfigError);
    }
}

TEST_CASE("a symbolic link as lock file is refused, and its target is not changed") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "run");
    const RunDirectory directory(folder / "run");
    testing::put_contents(folder / "precious", "do not empty me");
    std::filesystem::create_symlink(folder / "precious", directory.lock());

    CHECK_THROWS_WITH_AS(RunLock(directory, "1"), doctest::Contains("symbolic link"), ConfigError);
    CHECK_FALSE(is_locked(directory));

    CHECK(testing::contents(folder / "precious") == "do not empty me");
}

TEST_CASE("a lock file without read permission counts as locked") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
    testing::put_contents(directory.lock(), "");
    std::filesystem::permissions(directory.lock(), std::filesystem::perms::none);

    CHECK(testing::without_privileges([&] { return is_locked(directory) ? 0 : 1; }) == 0);
}

TEST_CASE("a FIFO as lock file is refused without blocking") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    REQUIRE(::mkfifo(directory.lock().c_str(), 0600) == 0);

    CHECK_FALSE(is_locked(directory));
    CHECK_THROWS_WITH_AS(RunLock(directory, "1"), doctest::Contains("FIFO"), ConfigError);
}

TEST_CASE("a lock in a missing folder throws ConfigError") {
    const TemporaryFolder folder;

    CHECK_THROWS_AS(RunLock(RunDirectory(folder / "none"), ""), ConfigError);
    CHECK_FALSE(is_locked(RunDirectory(folder / "none")));
}
