#pragma once

#include "finch/config/config.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace finch::simulate {

/// The measured time of a message between two leaders, from send() to take(), in seconds. The receiver polls its
/// mailbox every millisecond, as an idle worker does. Measured with 2 ranks of one node and 400 bytes
/// (tools/bench/mailbox.cpp).
inline constexpr double measured_message_seconds = 0.0005;

struct Options {
    int workers = 1;
    search::PretendedDuration duration;
    double message_seconds = measured_message_seconds;
};

/// The result of one simulated run.
struct Result {
    std::uint64_t seed = 0;
    std::int64_t evaluations = 0;
    double best = 0;                ///< the best loss; NaN: there is none
    double hours = 0;               ///< virtual time until the last evaluation ended
    double busy_fraction = 0;       ///< share of the workers' virtual time in which they evaluated
    std::int64_t messages = 0;      ///< messages from one leader to another
    double leader_bytes = 0;        ///< mean estimated size of a leader's population, without world rank 0
    double archivist_bytes = 0;     ///< estimated size of world rank 0's population, which has all individuals
    double wall_seconds = 0;        ///< real time that the simulation took
};

/// Throws ConfigError if `config` trains networks or starts programs, reads other runs, has a budget or a topology that
/// needs nodes, or does not fit the number of workers.
void check(const config::Config& config, const Options& options);

/// Simulates one run of `config` with `seed` in virtual time. Uses the production code of workers, populations,
/// propagators, exchange, leases and archivist; only messages and evaluations are simulated. Writes no files. The same
/// arguments give bitwise the same result, except wall_seconds. Throws as check() does.
[[nodiscard]] Result run(const config::Config& config, const Options& options, std::uint64_t seed);

}  // namespace finch::simulate
