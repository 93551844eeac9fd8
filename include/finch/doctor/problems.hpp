#pragma once

#include "finch/doctor/facts.hpp"

/// Problems of a machine, and how to mend them.
namespace finch::doctor {

struct Problem {
    bool stops = false;  ///< a run with the defaults does not start, or not on the GPUs that are there
    std::string what;
    std::string mend;
    bool operator==(const Problem&) const = default;
};

/// Everything that is wrong, what stops a run first. A pure function.
[[nodiscard]] std::vector<Problem> find_problems(const Facts& facts);

/// Whether a program built for `architectures` ("80-real 90": CMake's names) has code for a device of `capability`
/// (90: Hopper): machine code of the same major version and no later minor one, or PTX (no "-real") of any earlier one.
[[nodiscard]] bool has_code_for(const std::string& architectures, int capability);

}  // namespace finch::doctor
