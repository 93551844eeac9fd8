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
        const RunLock lock(directory, job, LockOptions{kind});
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

/// The last sign of life was `age` seconds ago.
void set_age(const RunDirectory& directory, double age) {
    const double then = unix_seconds() - age;
    const timespec moment{static_cast<time_t>(std::floor(then)), 0};
    const timespec times[2]{moment, moment};
    ::utimensat(AT_FDCWD, directory.lock().c_str(), times, 0);
}

/// A lock by heartbeat that a process on another host renewed `age` seconds ago.
void leave_foreign_lock(const RunDirectory& directory, const std::string& job, double age) {
    const auto beside = directory.root() / "foreign";
    testing::put_contents(beside, fmt::format("job {}\nhost elsewhere\nprocess 12\nheartbeat abc\n", job));
    std::filesystem::rename(beside, directory.lock());
    set_age(directory, age);
}

}  // namespace

TEST_CASE("a second process is refused while the first lives, is told who holds the run, and gets it after kill -9") {
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

TEST_CASE("a lock ends with its owner, and can be taken again") {
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

TEST_CASE("looking at the lock from its own process does not end it") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    const RunLock lock(directory, "1");

    CHECK(is_locked(directory));
    CHECK(testing::contents(directory.lock()).find("job 1") == 0);

    CHECK(in_another_process([&] { return try_lock(directory, "2", LockKind::automatic); }) == 1);
    CHECK(in_another_process([&] { return is_locked(directory) ? 1 : 0; }) == 1);
}

TEST_CASE(
    "a lock of another host counts while it changes, whatever its time says, and is free after a minute without") {
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

TEST_CASE("many locks are watched at the same time") {
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

TEST_CASE("a copy of a run that goes on is free, and so is a dead one's whose process number lives again") {
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

TEST_CASE("a process of another machine with this one's host name is not looked for among those of this one") {
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
    leave_lock("");  // as earlier programs wrote it
    CHECK_FALSE(is_locked(directory, beating));
}

TEST_CASE("where locks hold on one node only, the heartbeat keeps a job on another node out") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    RunLock first(directory, "1", LockOptions{LockKind::automatic, "n1", {}});
    // The lock on another node's view of the file: there is none.
    const LockOptions elsewhere{LockKind::heartbeat, "n2", [&](double) { first.renew(); }};

    CHECK_THROWS_WITH_AS(RunLock(directory, "2", elsewhere), doctest::Contains("job 1, process"), ConfigError);
    CHECK_THROWS_WITH_AS(RunLock(directory, "", elsewhere), doctest::Contains("on n1"), ConfigError);
}

TEST_CASE("the same job's next start waits for the silence of the node that died, then takes the lock over") {
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

TEST_CASE("a lock that the kernel keeps for a dead node is taken over by the same job alone") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    // Our own lock stands for that of a node whose server does not know yet that it is gone.
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

TEST_CASE("the same job is refused in the end where its other step on another node lives on") {
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

TEST_CASE("of two that take a free lock at the same moment the last gets it, and the first is refused") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    const auto pause = [&](double) { leave_foreign_lock(directory, "2", 0); };  // between writing and looking

    CHECK_THROWS_WITH_AS(RunLock(directory, "1", LockOptions{LockKind::automatic, "n1", pause}),
                         doctest::Contains("job 2"), ConfigError);

    CHECK(testing::contents(directory.lock()).find("job 2") == 0);
}

TEST_CASE("who lost the lock hears of it at the next sign of life, and its end does not disturb the new owner") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    {
        RunLock lock(directory, "1");
        leave_foreign_lock(directory, "2", 0);

        CHECK_THROWS_WITH_AS(lock.renew(), doctest::Contains("job 2"), LockLost);
    }
    CHECK(testing::contents(directory.lock()).find("job 2") == 0);
}

TEST_CASE("an archive whose run is taken over while it is written replaces nothing") {
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

TEST_CASE("a lock whose file is gone is a failure of the storage, not another's run") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    RunLock lock(directory, "1");
    std::filesystem::remove(directory.lock());

    CHECK_THROWS_AS(lock.renew(), StorageError);
}

TEST_CASE("a sign of life is given whatever the file system's locks are worth") {
    for (const LockKind kind : {LockKind::automatic, LockKind::heartbeat}) {
        const TemporaryFolder folder;
        const RunDirectory directory(folder.path());
        RunLock lock(directory, "1", LockOptions{kind, "n1", {}});
        const LockOptions elsewhere{LockKind::heartbeat, "n2", [&](double) { lock.renew(); }};

        CHECK_THROWS_AS(RunLock(directory, "2", elsewhere), ConfigError);
    }
}

TEST_CASE("a link in the lock's place is refused, and what it leads to is left alone") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "run");
    const RunDirectory directory(folder / "run");
    testing::put_contents(folder / "precious", "do not empty me");
    std::filesystem::create_symlink(folder / "precious", directory.lock());

    CHECK_THROWS_WITH_AS(RunLock(directory, "1"), doctest::Contains("symbolic link"), ConfigError);
    CHECK_FALSE(is_locked(directory));

    CHECK(testing::contents(folder / "precious") == "do not empty me");
}

TEST_CASE("a lock that may not be read counts as held") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
    testing::put_contents(directory.lock(), "");
    std::filesystem::permissions(directory.lock(), std::filesystem::perms::none);

    CHECK(testing::without_privileges([&] { return is_locked(directory) ? 0 : 1; }) == 0);
}

TEST_CASE("a FIFO in the lock's place is refused at once") {
    const TemporaryFolder folder;
    const RunDirectory directory(folder.path());
    REQUIRE(::mkfifo(directory.lock().c_str(), 0600) == 0);

    CHECK_FALSE(is_locked(directory));
    CHECK_THROWS_WITH_AS(RunLock(directory, "1"), doctest::Contains("FIFO"), ConfigError);
}

TEST_CASE("a lock in a folder that is not there is the user's error") {
    const TemporaryFolder folder;

    CHECK_THROWS_AS(RunLock(RunDirectory(folder / "none"), ""), ConfigError);
    CHECK_FALSE(is_locked(RunDirectory(folder / "none")));
}
