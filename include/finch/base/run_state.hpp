#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace finch {

/// The state of a run. The archive never stores `interrupted`: a run is interrupted if its archive says `running` but
/// no process holds its lock.
enum class RunState : std::uint8_t {
    running,
    complete,     ///< its budget is used up
    stopped,      ///< it stopped cleanly and can be resumed
    terminated,   ///< it stopped within seconds (SIGTERM or a dead peer) and can be resumed
    interrupted,  ///< it ended in another way, for example by a kill
    gave_up,      ///< it stopped cleanly because no evaluation gave a result
};
constexpr std::array<std::string_view, 6> words_of(RunState) {
    return {"running", "complete", "stopped", "terminated", "interrupted", "gave up"};
}

/// The exit codes of all subcommands. jobs/evolve.sbatch depends on them.
inline constexpr int exit_done = 0;
inline constexpr int exit_fault = 1;  ///< all codes that are not listed here are faults too
inline constexpr int exit_input = 2;
inline constexpr int exit_stopped = 75;
inline constexpr int exit_interrupted = 76;
inline constexpr int exit_running = 77;
inline constexpr int exit_no_result = 78;  ///< finch status: the run is complete without a result, or gave up

[[nodiscard]] constexpr int exit_code(RunState state) noexcept {
    constexpr std::array codes{exit_running, exit_done, exit_stopped, exit_stopped, exit_interrupted, exit_no_result};
    return codes.at(static_cast<std::size_t>(state));
}

}  // namespace finch
