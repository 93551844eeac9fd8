#pragma once

#include "finch/config/config.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace finch::simulate {

/// One way between two leaders, from send() to take() by one that looks into its mailbox every millisecond, as an idle
/// worker does; 2 ranks of one node, 400 bytes (tools/bench/mailbox.cpp).
inline constexpr double measured_message_seconds = 0.0005;

struct Options {
    int workers = 1;
    search::PretendedDuration duration;
    double message_seconds = measured_message_seconds;
};

/// What one simulated run came to.
struct Result {
    std::uint64_t seed = 0;
    std::int64_t evaluations = 0;
    double best = 0;                ///< loss; NaN: none
    double best_without_noise = 0;  ///< the value of its genome without the function's noise
    double hours = 0;               ///< virtual, until the last evaluation ended
    double busy_fraction = 0;       ///< of the workers' time until then, in which they evaluated
    std::int64_t messages = 0;      ///< from leader to leader
    double leader_bytes = 0;        ///< estimated size of a leader's population, mean over all but world rank 0's
    double archivist_bytes = 0;     ///< of world rank 0's, which knows everything
    double wall_seconds = 0;        ///< that the simulation took
};

/// Throws ConfigError if `config` trains networks, has a budget that a simulation cannot count, or does not fit so
/// many workers.
void check(const config::Config& config, const Options& options);

/// One run of `config` under `seed` in virtual time: the production code of workers, populations, propagators,
/// exchange, leases and archivist, with simulated messages and evaluations; nothing is written. The same arguments give
/// the same result to the last bit, but for wall_seconds. Throws as check() does.
[[nodiscard]] Result run(const config::Config& config, const Options& options, std::uint64_t seed);

}  // namespace finch::simulate
