#pragma once

#include "finch/process/launcher.hpp"

#include "support/temporary_folder.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/types.h>
#include <thread>
#include <utility>
#include <vector>

/// Helper functions for the tests of the process module. They wait for conditions without a limit, because the tests
/// have a timeout.
namespace finch::testing {

inline process::Program program(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    environment.emplace_back("PATH=/usr/local/bin:/usr/bin:/bin");
    return {std::move(arguments), std::move(environment), "/"};
}
inline process::Program shell(const std::string& text, std::vector<std::string> environment = {}) {
    return program({"sh", "-c", text}, std::move(environment));
}
inline process::Program python(const std::string& text, std::vector<std::string> environment = {}) {
    return program({"python3", "-S", "-c", text}, std::move(environment));
}

/// Starts a launcher with FINCH_LAUNCHER, the built finch-launcher. If FINCH_TEST_COPY is set, the helper is a forked
/// copy of the test.
inline process::Launcher new_launcher() {
    return process::Launcher::fork(std::getenv("FINCH_TEST_COPY") != nullptr ? "" : FINCH_LAUNCHER);
}

template <class Condition>
void until(const Condition& condition) {
    while (!condition()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

/// Returns the next lines: at least one, unless the program has ended.
inline std::vector<std::string> some_lines(process::Child& child) {
    process::Child* one = &child;
    std::vector<std::string> lines;
    while (lines.empty() && !child.ended()) {
        process::wait_for_any({&one, 1}, 60);
        lines = child.take_lines();
    }
    return lines.empty() ? child.take_lines() : lines;
}

/// Waits until the program writes its first line, for example "ready".
inline process::Child ready(process::Child child) {
    static_cast<void>(some_lines(child));
    return child;
}

/// Waits for the end of the program, and appends its lines to `lines`.
inline process::Ended finish(process::Child& child, std::vector<std::string>* lines = nullptr) {
    while (true) {
        const bool has_ended = child.ended().has_value();
        for (std::string& line : some_lines(child)) {
            if (lines != nullptr) {
                lines->push_back(std::move(line));
            }
        }
        if (has_ended) {
            return *child.ended();
        }
    }
}
inline std::vector<std::string> lines_of(process::Child child) {
    std::vector<std::string> lines;
    finish(child, &lines);
    return lines;
}

/// Returns the number of processes with `marker` in their initial environment. Zombies have no environment.
inline int alive_with(const std::string& marker) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        count += name.find_first_not_of("0123456789") == std::string::npos &&
                 contents(entry.path() / "environ").find(marker) != std::string::npos;
    }
    return count;
}

}  // namespace finch::testing
