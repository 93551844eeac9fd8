#include "process/support.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/resource.h>

using namespace finch;
using namespace finch::process;
using namespace finch::testing;

namespace {

using Lines = std::vector<std::string>;

std::string not_started(Launcher& launcher, const Program& program) {
    Child child = launcher.start(program);
    const Ended ended = finish(child);
    CHECK(ended.code == 127);
    return ended.problem;
}

std::vector<int> cpus_of_this_thread() {
    cpu_set_t set;
    REQUIRE(::sched_getaffinity(0, sizeof set, &set) == 0);
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) {
            cpus.push_back(cpu);
        }
    }
    return cpus;
}

void set_cpus_of_this_thread(const std::vector<int>& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) {
        CPU_SET(cpu, &set);
    }
    REQUIRE(::sched_setaffinity(0, sizeof set, &set) == 0);
}

long peak_kilobytes() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

}  // namespace

TEST_CASE("ended: returns the exit code or the signal of the program") {
    Launcher launcher = new_launcher();
    Child good = launcher.start(program({"true"}));
    Child bad = launcher.start(shell("exit 3"));
    Child fault = launcher.start(shell("kill -SEGV $$"));

    CHECK(finish(good) == Ended{});
    CHECK(finish(bad) == Ended{3, 0, ""});
    CHECK(finish(fault) == Ended{0, SIGSEGV, ""});
}

TEST_CASE("start: a program that cannot start ends with code 127, or 126 if its name is right, and with the reason") {
    Launcher launcher = new_launcher();
    const TemporaryFolder folder;
    put_contents(folder / "data", "no program");
    Program elsewhere = program({"true"});
    elsewhere.folder = "/no/such/folder";
    Program too_long = program({"true", std::string(std::size_t{1} << 20U, 'x')});

    const auto because = [](const std::string& name, int code) {
        return name + " cannot be started: " + std::strerror(code);
    };
    CHECK(not_started(launcher, program({"finch-no-such-program"})) == because("finch-no-such-program", ENOENT));
    CHECK(not_started(launcher, program({"/no/such/program"})) == because("/no/such/program", ENOENT));
    CHECK(not_started(launcher, program({folder / "data"})) == because(folder / "data", EACCES));
    CHECK(not_started(launcher, program({folder.path()})) == because(folder.path(), EACCES));
    CHECK(not_started(launcher, elsewhere) == std::string("/no/such/folder: ") + std::strerror(ENOENT));
    CHECK(not_started(launcher, too_long) == because("true", E2BIG));
    CHECK(not_started(launcher, program({})) == "no program is named");
    CHECK(not_started(launcher, program({"echo", std::string("a\0b", 3)})).find("null byte") != std::string::npos);
}

TEST_CASE("start: the error mentions a missing script interpreter, and shortens a long name instead of the reason") {
    Launcher launcher = new_launcher();
    const TemporaryFolder folder;
    put_contents(folder / "script", "#!/no/such/interpreter\n");
    put_contents(folder / "other", "#!/bin/sh\r\n");
    for (const char* name : {"script", "other"}) {
        std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
    }
    const std::string reason =
        std::string(" cannot be started: ") + std::strerror(ENOENT) + " (is the interpreter in its first line there?)";
    const Program searched{{"other"}, {"PATH=/no/such/folder:" + folder.path().string()}, "/"};
    const Program relative{{"./script"}, {}, folder.path()};

    CHECK(not_started(launcher, program({folder / "script"})) == (folder / "script").string() + reason);
    CHECK(not_started(launcher, searched) == "other" + reason);
    CHECK(not_started(launcher, relative) == "./script" + reason);
    CHECK(not_started(launcher, program({std::string(250, 'x')})) ==
          "…" + std::string(160, 'x') + " cannot be started: " + std::strerror(ENOENT));
}

TEST_CASE("start: the program gets only its own arguments, environment and folder") {
    Launcher launcher = new_launcher();
    const TemporaryFolder folder;
    put_contents(folder / "named",
                 "#!/bin/sh\necho \"$# $1 $2\"; pwd; /usr/bin/env -u PWD -u OLDPWD -u _ | /usr/bin/sort\n");
    std::filesystem::permissions(folder / "named", std::filesystem::perms::owner_all);

    Program named{{"named", "a b", ""}, {"PATH=" + folder.path().string(), "NAME=a value"}, folder.path()};
    const Lines lines = lines_of(launcher.start(named));

    CHECK(lines == Lines{"2 a b ", std::filesystem::canonical(folder.path()), "NAME=a value", named.environment[0]});
}

TEST_CASE("start: a program has the default signal actions and only the descriptors 0, 1 and 2") {
    Launcher launcher = new_launcher();
    const std::string text =
        "import os, re\nfor line in open('/proc/self/status'):\n"
        "  if re.match('Sig(Blk|Cgt)', line): print(int(line.split()[1], 16) & ~2)\n"
        "print(sorted(os.listdir('/proc/self/fd'))[:-1], os.getpgrp() == os.getpid())";

    CHECK(lines_of(launcher.start(python(text))) == Lines{"0", "0", "['0', '1', '2'] True"});
}

TEST_CASE("start: a program runs on its given CPUs, also on CPUs outside the launcher's affinity mask") {
    const std::vector<int> all = cpus_of_this_thread();
    set_cpus_of_this_thread({all.front()});
    Launcher launcher = new_launcher();
    set_cpus_of_this_thread(all);
    Program own = python("import os; print(*sorted(os.sched_getaffinity(0)))");
    Program given = own;
    given.cpus = all;
    std::string text;
    for (const int cpu : all) {
        text += (text.empty() ? "" : " ") + std::to_string(cpu);
    }

    CHECK(lines_of(launcher.start(own)) == Lines{std::to_string(all.front())});
    CHECK(lines_of(launcher.start(given)) == Lines{text});
}

TEST_CASE("start: accepts an environment of a megabyte") {
    Launcher launcher = new_launcher();
    Lines environment;
    for (int i = 0; i < 16; ++i) {
        environment.push_back("LONG" + std::to_string(i) + "=" + std::string(std::size_t{1} << 16U, 'x'));
    }

    CHECK(lines_of(launcher.start(shell("env | wc -c", environment))).at(0).size() == 7);
}

TEST_CASE("write: a program answers line by line, and ends at the end of its input") {
    Launcher launcher = new_launcher();
    Child echo = launcher.start(program({"cat"}));
    for (const std::string& line : Lines{"first", "second", "third"}) {
        echo.write(line + "\n");
        CHECK(some_lines(echo) == Lines{line});
    }
    echo.write("without an end");
    echo.close_input();
    Lines rest;

    CHECK(finish(echo, &rest) == Ended{});
    CHECK(rest == Lines{"without an end"});
    CHECK(echo.output() == "first\nsecond\nthird\nwithout an end");
}

TEST_CASE("write: ten megabytes reach a program that reads late") {
    Launcher launcher = new_launcher();
    Child late = ready(launcher.start(shell("echo ready; kill -STOP $$; wc -c")));
    late.write(std::string(10'000'000, 'x'));
    late.close_input();
    until([&] {
        late.signal(SIGCONT);
        return late.ended().has_value();
    });

    CHECK(late.take_lines() == Lines{"10000000"});
}

TEST_CASE("write: succeeds if the program does not read or has closed its input") {
    Launcher launcher = new_launcher();
    for (const std::string& text :
         {std::string("echo ready; sleep 1000"), std::string("exec <&-; echo ready; exec sleep 1000")}) {
        Child child = ready(launcher.start(shell(text)));
        child.write(std::string(1'000'000, 'x'));
        child.end(60);
        CHECK(finish(child).signal == SIGTERM);
        child.write("too late");
        child.close_input();
    }
}

TEST_CASE("take_lines: an incomplete line is returned after the program has ended") {
    Launcher launcher = new_launcher();
    Child child = launcher.start(shell("printf 'whole\\nhalf'; echo told >&2; exec sleep 1000"));
    until([&] { return !child.ended() && child.errors() == "told\n"; });

    CHECK(child.take_lines() == Lines{"whole"});
    child.end(60);
    Lines rest;
    CHECK(finish(child, &rest).signal == SIGTERM);
    CHECK(rest == Lines{"half"});
}

TEST_CASE("take_lines: a program can continue after it closed its output") {
    Launcher launcher = new_launcher();
    Child child = launcher.start(shell("printf last; exec >&-; read line; echo $line >&2; exit 4"));

    CHECK(some_lines(child) == Lines{"last"});
    child.write("heard\n");
    CHECK(finish(child).code == 4);
    CHECK(child.errors() == "heard\n");
}

TEST_CASE("take_lines: buffers a limited amount of output, and loses no line at the end") {
    Launcher launcher = new_launcher();
    const std::size_t mebibyte = std::size_t{1} << 20U;  // 16 lines: the last byte completes the last line
    Child child =
        launcher.start(shell("for i in $(seq 16); do head -c 65535 /dev/zero | tr '\\0' x; echo; done\n"
                             "read line; seq 9000; echo told >&2; read line; exit 3"));
    until([&] { return !child.ended() && child.output().size() == mebibyte; });
    child.write("\n");
    until([&] { return !child.ended() && child.errors() == "told\n"; });

    CHECK(child.output().size() == mebibyte);
    child.write("\n");
    until([&] { return child.ended().has_value(); });
    CHECK(child.ended() == Ended{3, 0, ""});
    CHECK(child.take_lines().size() == 9016);
}

TEST_CASE("take_lines: a gigabyte of output needs limited memory, in many lines or in one") {
    Launcher launcher = new_launcher();
    const long before = peak_kilobytes();
    const std::string line(99, 'x');
    for (const std::string& text :
         {"yes " + line + " | head -c 1000000000", std::string("head -c 1000000000 /dev/zero | tr '\\0' x")}) {
        Child child = launcher.start(shell(text + "; yes error | head -c 10000000 >&2"));
        std::size_t bytes = 0;
        while (!child.ended()) {
            for (const std::string& one : some_lines(child)) {
                bytes += one.size() + 1;
            }
        }
        CHECK(child.ended() == Ended{});
        CHECK((bytes == 1'000'000'000 || bytes < LineSplitter::longest_line + 100));
        CHECK(child.output().size() > (std::size_t{1} << 20U));
        CHECK(child.output().size() < (std::size_t{1} << 20U) + 100);
        CHECK(child.errors().size() < (std::size_t{1} << 20U) + 100);
        CHECK(child.output().find("\n… 998951424 bytes left out …\n") != std::string::npos);
    }
    CHECK(peak_kilobytes() - before < 500'000);  // AddressSanitizer keeps 256 MiB of freed memory
}

TEST_CASE("end: during the grace time after SIGTERM, a program can still write and exit") {
    Launcher launcher = new_launcher();
    Child child =
        ready(launcher.start(shell("trap 'echo goodbye; exit 5' TERM; echo ready; while :; do sleep 0.01; done")));

    child.end(100);

    Lines lines;
    CHECK(finish(child, &lines).code == 5);
    CHECK(lines == Lines{"goodbye"});
}

TEST_CASE("end: SIGKILL ends a program that ignores SIGTERM, and the earlier of two deadlines applies") {
    Launcher launcher = new_launcher();
    const Program ignores = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    Child shorter = ready(launcher.start(ignores));
    Child sooner = ready(launcher.start(ignores));

    shorter.end(0.05);
    sooner.end(1e6);
    CHECK(finish(shorter).signal == SIGKILL);
    CHECK_FALSE(sooner.ended());
    sooner.end(0);
    sooner.end(1e6);
    CHECK(finish(sooner).signal == SIGKILL);
}

TEST_CASE("end: SIGTERM ends a stopped program") {
    Launcher launcher = new_launcher();
    Child child = ready(launcher.start(shell("echo ready; kill -STOP $$")));

    child.end(1e6);

    CHECK(finish(child).signal == SIGTERM);
}

TEST_CASE("signal: reaches only the process group of the program") {
    Launcher launcher = new_launcher();
    const std::string goes_on = "while :; do sleep 0.01; done";
    Child child = launcher.start(
        shell("trap 'echo caught' USR2\n(trap 'echo in the group' USR2; echo ready; " + goes_on +
              ") &\nsetsid sh -c 'trap \"echo beyond\" USR2; echo ready; exec sleep 1000' &\n" + goes_on));
    Lines lines;
    const auto more_than = [&](std::size_t count) {
        for (std::string& line : child.take_lines()) {
            lines.push_back(std::move(line));
        }
        return lines.size() > count;
    };
    until([&] { return more_than(1); });
    child.signal(SIGUSR2);
    until([&] { return more_than(3); });
    child.end(0);
    finish(child, &lines);

    std::sort(lines.begin(), lines.end());
    CHECK(lines == Lines{"caught", "in the group", "ready", "ready"});
}

TEST_CASE("wait_for_any: returns true if any child has lines, and false after the timeout") {
    Launcher launcher = new_launcher();
    Child quiet = launcher.start(program({"cat"}));
    Child loud = launcher.start(program({"cat"}));
    const std::vector<Child*> both{&quiet, &loud};

    CHECK_FALSE(wait_for_any(both, 0));
    CHECK_FALSE(wait_for_any(both, 0.001));
    loud.write("half a line");
    CHECK_FALSE(wait_for_any(both, 0.05));
    loud.write("\n");
    CHECK(wait_for_any(both, 1000));
    CHECK(loud.has_something());
    CHECK_FALSE(quiet.has_something());
    CHECK_FALSE(wait_for_any({}, 0.001));
}
