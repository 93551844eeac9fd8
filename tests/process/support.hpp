#pragma once

#include "finch/process/launcher.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

/// Programs for the tests of module process. Everything waits for states; a hang is the test's timeout.
namespace finch::testing {

inline process::Program program(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    environment.emplace_back("PATH=/usr/local/bin:/usr/bin:/bin");
    return {std::move(arguments), std::move(environment), "/", std::size_t{1} << 20U};
}

inline process::Program shell(const std::string& text) {
    return program({"sh", "-c", text});
}

/// Waits for a condition that another process will meet.
template <class Condition>
void until(const Condition& condition) {
    while (!condition()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

inline std::string next_line(process::Child& child) {
    while (true) {
        process::Child* one = &child;
        process::wait_for_any({&one, 1}, 60);
        if (const auto lines = child.take_lines(); !lines.empty()) {
            return lines.front();
        }
        if (child.ended()) {
            return "(it has ended)";
        }
    }
}

/// Runs a child to its end, with all of its lines.
inline process::Ended finish(process::Child& child, std::vector<std::string>* lines = nullptr) {
    process::Child* one = &child;
    while (true) {
        process::wait_for_any({&one, 1}, 60);
        const auto ended = child.ended();
        for (std::string& line : child.take_lines()) {
            if (lines != nullptr) {
                lines->push_back(std::move(line));
            }
        }
        if (ended) {
            return *ended;
        }
    }
}

}  // namespace finch::testing
