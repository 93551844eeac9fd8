#include "process/support.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

// The tests include this internal header. The public interface shows its results only if a process escapes.
#include "descendants.hpp"

using namespace finch;
using namespace finch::process;
using namespace finch::testing;

namespace {

/// A shell prefix: the shell and all processes that it starts ignore SIGTERM.
const std::string deaf = "trap '' TERM; ";
const std::string ready_text = "echo ready; ";
/// A shell command that starts 49 processes: seven subshells with six sleeps each.
const std::string tree = "for i in 1 2 3 4 5 6 7; do (for j in 1 2 3 4 5 6; do sleep 1000 & done; wait) & done; ";

/// Returns a new marker as an environment entry.
std::string new_marker() {
    static int count = 0;
    return "FINCH_TEST_MARKER=" + std::to_string(::getpid()) + "-" + std::to_string(++count) + ".";
}

pid_t only_child(pid_t process) {
    const auto all = children(process);
    REQUIRE(all.size() == 1);
    return all[0];
}

std::size_t open_descriptors(pid_t process) {
    const auto folder = "/proc/" + std::to_string(process) + "/fd";
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

bool is_zombie(pid_t process) {
    return contents("/proc/" + std::to_string(process) + "/stat").find(") Z") != std::string::npos;
}

}  // namespace

TEST_CASE("descendants: /proc children lists and /proc stat files give the same tree") {
    Launcher launcher = new_launcher();
    const std::string marker = new_marker();
    Child child = launcher.start(shell(tree + ready_text + "wait", {marker}));
    until([&] { return alive_with(marker) == 50; });

    auto by_lists = descendants_by_lists(::getpid());
    auto by_stat = descendants_by_stat(::getpid());

    CHECK(by_lists.size() == 52);  // the helper, an attendant, a shell, seven shells with six sleeps each
    std::sort(by_lists.begin(), by_lists.end());
    std::sort(by_stat.begin(), by_stat.end());
    CHECK(by_lists == by_stat);
}

TEST_CASE("ended: no descendant remains, even if it detaches from the program") {
    const std::pair<const char*, Program> hostile[] = {
        {"a tree", shell(tree + ready_text + "wait")},
        {"a deaf tree", shell(deaf + tree + ready_text + "wait")},
        {"a tree that its program leaves behind", shell(tree + ready_text)},
        {"a daemon", shell("(setsid sleep 1000 &); " + ready_text + "exec sleep 1000")},
        {"a daemon that outlives its program", shell("(setsid sleep 1000 &); " + ready_text)},
        {"a deaf daemon that outlives its program", shell(deaf + "(setsid sleep 1000 &); " + ready_text)},
        {"other process groups", shell("set -m; sleep 1000 & sleep 1000 & " + ready_text + "wait")},
        {"a program that leaves its group", python("import os, time\nos.setpgid(os.fork(), 0)\n"
                                                   "print('ready', flush=True)\ntime.sleep(1000)")},
        {"200 sessions", shell("for i in $(seq 200); do setsid sleep 1000 & done; " + ready_text + "wait")},
        {"200 deaf sessions", shell(deaf + "for i in $(seq 200); do setsid sleep 1000 & done; " + ready_text + "wait")},
        {"a parent that does not reap", python("import os, time\nfor i in range(20):\n  if not os.fork(): os._exit(0)\n"
                                               "print('ready', flush=True)\ntime.sleep(1000)")},
        {"a process that flees into its child",
         python("import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                "print('ready', flush=True)\nos.close(1)\n"
                "while True:\n  if os.fork(): os._exit(0)\n  os.setsid()")},
        {"a subreaper", python("import ctypes, os, time\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
                               "os.system('(setsid sleep 1000 &)')\nprint('ready', flush=True)\ntime.sleep(1000)")},
    };
    Launcher launcher = new_launcher();
    for (const auto& [name, text] : hostile) {
        CAPTURE(name);
        const std::string marker = new_marker();
        Program program = text;
        program.environment.push_back(marker);
        Child child = ready(launcher.start(program));

        child.end(0.1);

        const Ended ended = finish(child);
        CHECK(ended.problem.empty());
        CHECK(alive_with(marker) == 0);
    }
}

TEST_CASE("ended: processes that outlive their program are ended automatically") {
    Launcher launcher = new_launcher();
    const std::string marker = new_marker();
    Child child = launcher.start(shell("(setsid sleep 1000 &); sleep 1000 & exit 6", {marker}));

    CHECK(finish(child) == Ended{6, 0, "", 2});
    CHECK(alive_with(marker) == 0);
}

TEST_CASE("ended: a filter of the program's output has time to write its last lines") {
    Launcher launcher = new_launcher();
    const std::string slow = "while kill -0 $$; do :; done 2>&-; cat; echo end";
    for (const std::string& filter : {slow, slow + " >&2", "cat 2>&- | { " + slow + "; }"}) {
        CAPTURE(filter);
        Child child = launcher.start(program({"bash", "-c", "exec > >(" + filter + "); echo first; echo last"}));

        CHECK(finish(child) == Ended{});
        CHECK(child.output() + child.errors() == "first\nlast\nend\n");
    }
}

TEST_CASE("ended: descendants without the program's standard output are ended, but not counted") {
    Launcher launcher = new_launcher();
    const std::string marker = new_marker();
    Child child = launcher.start(shell(deaf + "sleep 1000 >/dev/null 2>&1 & sleep 1000 >&2 &", {marker}));

    CHECK(finish(child) == Ended{});
    CHECK(alive_with(marker) == 0);
}

TEST_CASE("Child: the destructor ends the program") {
    Launcher launcher = new_launcher();
    const std::string marker = new_marker();
    { const Child child = ready(launcher.start(shell("setsid sleep 1000 & echo ready; wait", {marker}))); }

    until([&] { return alive_with(marker) == 0 && children(only_child(::getpid())).empty(); });
}

TEST_CASE("~Launcher: kills running programs, and their Child objects still report how they ended") {
    const std::string marker = new_marker();
    std::vector<Child> running;
    {
        Launcher launcher = new_launcher();
        for (int i = 0; i < 5; ++i) {
            running.push_back(ready(launcher.start(shell(deaf + tree + ready_text + "wait", {marker}))));
        }
    }

    CHECK(alive_with(marker) == 0);
    CHECK(children(::getpid()).empty());
    for (Child& child : running) {
        CHECK(child.ended() == Ended{0, SIGKILL, ""});
    }
}

TEST_CASE("Launcher: 200 programs leave no process and no open descriptor") {
    Launcher launcher = new_launcher();
    const pid_t helper = only_child(::getpid());
    const auto run_one = [&] {
        Child child = launcher.start(program({"true"}));
        CHECK(finish(child) == Ended{});
        until([&] { return children(helper).empty(); });
    };
    run_one();
    const std::size_t ours = open_descriptors(::getpid());
    const std::size_t its = open_descriptors(helper);

    for (int i = 0; i < 200; ++i) {
        run_one();
    }

    CHECK(open_descriptors(::getpid()) == ours);
    CHECK(open_descriptors(helper) == its);
    CHECK(only_child(::getpid()) == helper);
}

TEST_CASE("Launcher: signals to the caller's process group end neither the helper nor an attendant") {
    const pid_t caller = ::fork();
    if (caller == 0) {
        ::setpgid(0, 0);
        Launcher launcher = new_launcher();
        Child child = launcher.start(program({"cat"}));
        for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP}) {
            ::signal(signal, SIG_IGN);
            ::kill(0, signal);
        }
        Child other = launcher.start(program({"cat"}));
        child.write("a line\n");
        other.write("a line\n");
        ::_exit(some_lines(child).size() == 1 && some_lines(other).size() == 1 ? 0 : 1);
    }
    int status = 0;
    ::waitpid(caller, &status, 0);
    CHECK(status == 0);
}

TEST_CASE("Launcher: programs also ignore a SIGHUP that nohup ignores") {
    for (const auto& [action, expected] :
         {std::pair{SIG_IGN, Ended{3, 0, ""}}, std::pair{SIG_DFL, Ended{0, SIGHUP, ""}}}) {
        const auto before = ::signal(SIGHUP, action);
        Launcher launcher = new_launcher();
        ::signal(SIGHUP, before);

        Child child = launcher.start(shell("kill -HUP $$; exit 3"));

        CHECK(finish(child) == expected);
    }
}

TEST_CASE("end: a late end() does not lose the exit report") {
    Launcher launcher = new_launcher();
    Child child = ready(launcher.start(shell("echo ready; read line; exit 7")));
    const pid_t helper = only_child(::getpid());
    const pid_t attendant = only_child(helper);
    ::kill(helper, SIGSTOP);  // the helper keeps the attendant's end of the socket until it continues
    child.close_input();
    until([&] { return is_zombie(attendant); });

    child.end(1);
    ::kill(helper, SIGCONT);
    until([&] { return children(helper).empty(); });

    CHECK(finish(child) == Ended{7, 0, ""});
}

TEST_CASE("attendant killed: its descendants are ended, and the child reports its end") {
    Launcher launcher = new_launcher();
    const std::string marker = new_marker();
    Child other = ready(launcher.start(shell("echo ready; exec cat")));
    const auto before = children(only_child(::getpid()));
    Child child = ready(launcher.start(shell(deaf + "(setsid sleep 1000 &);" + tree + ready_text + "wait", {marker})));
    for (const pid_t attendant : children(only_child(::getpid()))) {
        if (attendant != before.at(0)) {
            ::kill(attendant, SIGKILL);
        }
    }

    const Ended ended = finish(child);

    CHECK(ended.signal == SIGKILL);
    CHECK_FALSE(ended.problem.empty());
    CHECK(alive_with(marker) == 0);
    other.write("still here\n");
    CHECK(some_lines(other) == std::vector<std::string>{"still here"});
}

TEST_CASE("helper killed: all programs are ended, and a new start throws") {
    Launcher launcher = new_launcher();
    const std::string marker = new_marker();
    Child child = ready(launcher.start(shell(deaf + tree + ready_text + "wait", {marker})));
    const pid_t helper = only_child(::getpid());
    ::kill(helper, SIGKILL);

    CHECK(finish(child).signal == SIGKILL);
    CHECK(alive_with(marker) == 0);
    until([&] { return is_zombie(helper); });  // the helper closes its socket when it becomes a zombie
    CHECK_THROWS_AS(static_cast<void>(launcher.start(program({"true"}))), ApiError);
}

TEST_CASE("caller killed: no process remains, in a hundred repetitions") {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // the helper and all escaped processes become children of this process
    for (int round = 0; round < 100; ++round) {
        CAPTURE(round);
        const std::string marker = new_marker();
        const std::string deafness = round % 25 == 24 ? deaf : "";
        const pid_t caller = ::fork();
        if (caller == 0) {
            Launcher launcher = new_launcher();
            std::vector<Child> running;
            while (true) {
                running.push_back(launcher.start(
                    shell(deafness + "(setsid sleep 1000 &); sleep 1000 & setsid sleep 1000 & wait", {marker})));
                until([&] { return alive_with(marker) > static_cast<int>(running.size()); });
            }
        }
        until([&] { return alive_with(marker) > round % 10; });
        ::kill(caller, SIGKILL);
        ::waitpid(caller, nullptr, 0);

        int came = 0;
        while (::waitpid(-1, nullptr, 0) > 0) {
            CHECK(++came == 1);  // only the helper, after all processes that it started are gone
            CHECK(alive_with(marker) == 0);
        }
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}
