#include "finch/backend/cuda_runtime.hpp"

#include "kernel_launch.hpp"
#include "lap_timer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace finch::backend::cuda {
namespace {

/// The kernel that ends the current lap. `ended` is the activity of the current lap. One thread.
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

}  // namespace

CudaLapTimer::CudaLapTimer(Stream& stream)
    : stream_(stream), memory_(stream.allocate(sizeof(LapState))), state_(static_cast<LapState*>(memory_.get())) {}

/// Ignores launch errors, because the next launch of the step reports them.
void CudaLapTimer::begin(Lap lap) noexcept {
    if (lap.activity != present().activity) {
        static_cast<void>(launch(stream_.get(), {.threads = 1}, EndLap{.state = state_, .ended = present().activity}));
    }
}

LapTimes CudaLapTimer::take() {
    std::vector<LapState> copies(1);  // too large for the call stack
    LapState& state = copies.front();
    FINCH_CUDA(cudaMemcpyAsync(&state, state_, offsetof(LapState, all_reduce), cudaMemcpyDeviceToHost, stream_.get()));
    FINCH_CUDA(cudaStreamSynchronize(stream_.get()));
    LapTimes times;
    for (std::size_t i = 0; i < times.seconds.size(); ++i) {
        times.seconds[i] = 1e-9 * static_cast<double>(state.nanoseconds[i]);
    }
    times.of(Activity::other) = 0;
    const auto laps = static_cast<std::size_t>(std::min(state.all_reduces, LapState::most_all_reduces));
    if (laps > 0) {
        FINCH_CUDA(cudaMemcpyAsync(state.all_reduce, state_->all_reduce, laps * sizeof state.all_reduce[0],
                                   cudaMemcpyDeviceToHost, stream_.get()));
    }
    FINCH_CUDA(
        cudaMemsetAsync(state_->nanoseconds, 0, sizeof state.nanoseconds + sizeof state.all_reduces, stream_.get()));
    FINCH_CUDA(cudaStreamSynchronize(stream_.get()));
    for (std::size_t i = 0; i < laps; ++i) {
        times.all_reduces.push_back(1e-9 * static_cast<double>(state.all_reduce[i]));
    }
    return times;
}

}  // namespace finch::backend::cuda
