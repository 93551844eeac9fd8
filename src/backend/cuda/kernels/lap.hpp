#pragma once

#include "lap_state.hpp"

#include <cstdint>
#include <kernel_launch.hpp>

namespace finch::backend::cuda {

/// Ends the present lap, in `ended`. One thread.
struct EndLap {
    static constexpr int max_threads = 32;
    LapState* state;
    Activity ended;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::uint64_t now = thread.nanoseconds();
        const std::uint64_t length = now - state->since;
        state->since = now;
        state->nanoseconds[static_cast<std::uint32_t>(ended)] += length;
        if (ended == Activity::all_reduce) {
            if (state->all_reduces < LapState::most_all_reduces) {
                constexpr std::uint64_t most = 0xffffffffU;
                state->all_reduce[state->all_reduces] = static_cast<std::uint32_t>(length < most ? length : most);
            }
            state->all_reduces += 1;
        }
    }
};

}  // namespace finch::backend::cuda
