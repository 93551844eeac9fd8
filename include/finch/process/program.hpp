#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace finch::process {

/// A program to start.
struct Program {
    std::vector<std::string> arguments;    ///< arguments[0]: looked up in PATH of `environment`, as execvp(3) does
    std::vector<std::string> environment;  ///< "NAME=value", all of it
    std::string folder;       ///< working directory, exists; relative: to the caller's; empty: the caller's
    std::vector<int> cpus{};  ///< that it may run on, where the system allows it; empty: those of the caller's start
    std::size_t output_bytes = std::size_t{1} << 20U;  ///< kept of standard output and of standard error, see KeptText
};

/// How a program ended.
struct Ended {
    int code = 0;         ///< exit code; 127 if it could not be started
    int signal = 0;       ///< that ended it; 0: none
    std::string problem;  ///< why it could not be started ("x cannot be started: Permission denied") or ended, or was
                          ///< lost; empty if it ran and all of it is gone
    int cut_off = 0;      ///< descendants that held its standard output after its end, and were ended

    bool operator==(const Ended&) const = default;
};

}  // namespace finch::process
