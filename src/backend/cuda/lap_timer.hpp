#pragma once

#include "finch/backend/lap_timer.hpp"

#include "stream.hpp"

#include <cstdint>

namespace finch::backend::cuda {

/// What a CudaLapTimer keeps in the device's memory.
struct LapState {
    static constexpr std::int64_t most_all_reduces = std::int64_t{1} << 15;

    std::uint64_t since = 0;  ///< the device's clock when the present lap began, in ns
    std::uint64_t nanoseconds[activities] = {};
    std::int64_t all_reduces = 0;                     ///< laps, of which the first have their length in `all_reduce`
    std::uint32_t all_reduce[most_all_reduces] = {};  ///< ns
};

/// A kernel of one thread at each change of the activity reads the device's clock. It is captured with the step, so
/// that every repetition of its graph is measured.
class CudaLapTimer : public DeviceLapTimer {
public:
    /// `stream` must outlive it. Throws std::bad_alloc.
    explicit CudaLapTimer(Stream& stream);

    [[nodiscard]] LapTimes take() override;

private:
    void begin(Lap lap) noexcept override;

    Stream& stream_;
    StreamMemory memory_;
    LapState* state_;  ///< in it
};

}  // namespace finch::backend::cuda
