#pragma once

#include "finch/backend/lap_timer.hpp"

#include "stream.hpp"

#include <cstdint>

namespace finch::backend::cuda {

/// The state of a CudaLapTimer in device memory.
struct LapState {
    static constexpr std::int64_t most_all_reduces = std::int64_t{1} << 15;

    std::uint64_t since = 0;  ///< the device's clock at the start of the current lap, in ns
    std::uint64_t nanoseconds[activities] = {};
    std::int64_t all_reduces = 0;                     ///< number of laps; `all_reduce` has the first lengths
    std::uint32_t all_reduce[most_all_reduces] = {};  ///< ns
};

/// A lap timer on the device. At each change of activity, a kernel of one thread reads the device's clock. The kernel
/// is captured with the step, so that every repetition of the step's graph is measured.
class CudaLapTimer : public DeviceLapTimer {
public:
    /// `stream` must outlive this object. Throws std::bad_alloc.
    explicit CudaLapTimer(Stream& stream);

    [[nodiscard]] LapTimes take() override;

private:
    void begin(Lap lap) noexcept override;

    Stream& stream_;
    StreamMemory memory_;
    LapState* state_;  ///< in memory_
};

}  // namespace finch::backend::cuda
