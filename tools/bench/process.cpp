// Measures the time to start a program with Launcher, compared with posix_spawn, and the time of a line to a running
// program and back.
//
//     bench_process [PROGRAMS] [LINES] [LAUNCHER]
//
// The two ways to start a program take turns. LAUNCHER is the path of finch-launcher. With "", the helper process is a
// copy of this program.
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/process/launcher.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <spawn.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace finch;

namespace {

template <class Work>
double microseconds(const Work& work) {
    const double begin = steady_seconds();
    work();
    return (steady_seconds() - begin) * 1e6;
}

std::string quartiles(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return fmt::format("{:8.1f} [{:.1f}, {:.1f}] µs", times[times.size() / 2], times[times.size() / 4],
                       times[times.size() * 3 / 4]);
}

void spawn_true() {
    std::string name = "/bin/true";
    std::vector<char*> arguments{name.data(), nullptr};
    pid_t process = 0;
    ::posix_spawn(&process, name.c_str(), nullptr, nullptr, arguments.data(), environ);
    ::waitpid(process, nullptr, 0);
}

void wait_for(process::Child& child) {
    process::Child* one = &child;
    process::wait_for_any({&one, 1}, 60);
}

void launch_true(process::Launcher& launcher) {
    process::Child child = launcher.start({{"/bin/true"}, {}, "/"});
    while (!child.ended()) {
        wait_for(child);
    }
}

/// Returns the CPU time of this process and of all child processes that it has waited for.
double cpu_microseconds() {
    double sum = 0;
    for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage usage{};
        ::getrusage(who, &usage);
        for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
            sum += static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
        }
    }
    return sum;
}

void measure_cpu(int programs, const std::string& executable) {
    const double begin = cpu_microseconds();
    for (int i = 0; i < programs; ++i) {
        spawn_true();
    }
    const double spawned = cpu_microseconds();
    {
        process::Launcher launcher = process::Launcher::fork(executable);
        for (int i = 0; i < programs; ++i) {
            launch_true(launcher);
        }
    }
    const double launched = cpu_microseconds();
    fmt::print("CPU time of each: {:.1f} µs by posix_spawn, {:.1f} by Launcher\n", (spawned - begin) / programs,
               (launched - spawned) / programs);
}

void measure(int programs, int lines, process::Launcher& launcher) {
    std::vector<double> spawned;
    std::vector<double> launched;
    for (int i = 0; i < programs; ++i) {
        spawned.push_back(microseconds(spawn_true));
        launched.push_back(microseconds([&] { launch_true(launcher); }));
    }
    fmt::print("/bin/true by posix_spawn: {}\n", quartiles(spawned));
    fmt::print("/bin/true by Launcher:    {}\n", quartiles(launched));

    process::Child echo = launcher.start({{"/bin/cat"}, {}, "/"});
    std::vector<double> answered;
    for (int i = 0; i < lines; ++i) {
        answered.push_back(microseconds([&] {
            echo.write("a line\n");
            while (echo.take_lines().empty()) {
                wait_for(echo);
            }
        }));
    }
    fmt::print("a line to cat and back:   {}\n", quartiles(answered));
}

}  // namespace

int main(int count, char** arguments) {
    const auto argument = [&](int index, int otherwise) {
        return count > index ? std::max(1, std::atoi(arguments[index])) : otherwise;
    };
    const int programs = argument(1, 1000);
    const std::string executable = count > 3 ? arguments[3] : process::launcher_beside_program();
    {
        process::Launcher launcher = process::Launcher::fork(executable);
        measure(programs, argument(2, 10000), launcher);
    }
    measure_cpu(programs, executable);
}
