#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace finch::process {

/// A program to start.
struct Program {
    std::vector<std::string> arguments;    ///< arguments[0]: looked up in PATH of `environment`, as execvp(3) does
    std::vector<std::string> environment;  ///< the whole environment, as "NAME=value"
    std::string folder;       ///< existing working directory; relative to the caller's; empty: the caller's
    std::vector<int> cpus{};  ///< CPUs to run on, if the system allows it; empty: the caller's CPUs at its start
    std::size_t output_bytes = std::size_t{1} << 20U;  ///< kept bytes of standard output and of standard error
};

/// The exit code of a program that this node could not start, although its name is right: its file system has failed,
/// or the system refused another process.
inline constexpr int exit_of_node = 126;

/// A description of how a program ended.
struct Ended {
    int code = 0;    ///< exit code; 127 or exit_of_node if it could not be started
    int signal = 0;  ///< signal that ended it; 0: none
    /// An error text if the program could not be started ("x cannot be started: Permission denied"), if its processes
    /// could not be ended, or if its supervisor was killed. Empty if the program ran and none of its processes is left.
    std::string problem;
    int cut_off = 0;  ///< descendants that held its standard output after its end, and were ended

    bool operator==(const Ended&) const = default;
};

}  // namespace finch::process
