#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace finch {

/// How a run is. Its archive never says `interrupted`: that is a run which says `running` although no process holds its
/// lock.
enum class RunState : std::uint8_t {
    running,
    complete,     ///< its budget is used
    stopped,      ///< it ended in good order and waits to be resumed
    terminated,   ///< the same with seconds left, or a peer dead
    interrupted,  ///< it ended otherwise
    gave_up,      ///< it ended in good order, because no evaluation gave a result
};
constexpr std::array<std::string_view, 6> words_of(RunState) {
    return {"running", "complete", "stopped", "terminated", "interrupted", "gave up"};
}

/// Exit codes of all verbs; jobs/evolve.sbatch goes by them.
inline constexpr int exit_done = 0;
inline constexpr int exit_fault = 1;  ///< as is any other
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
