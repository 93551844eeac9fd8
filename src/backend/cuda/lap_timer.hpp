#pragma once

#include "finch/backend/lap_timer.hpp"

#include "lap_state.hpp"
#include "stream.hpp"

namespace finch::backend::cuda {

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
