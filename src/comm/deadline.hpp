#pragma once

#include "finch/base/clock.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace finch::comm {

/// True if the environment variable OMPI_MCA_mpi_yield_when_idle is enabled. Session sets this variable if a node has
/// fewer cores than ranks; the user may set it too.
[[nodiscard]] bool yields_when_idle();

/// The deadline of a wait for other ranks. The time between two polls counts as at most a tenth of a second. If this
/// process was suspended (by Slurm, by a debugger), it therefore blames no other rank when it continues.
class Deadline {
public:
    explicit Deadline(double seconds) : left_(seconds), last_(steady_seconds()), asleep_from_(last_ + seconds_awake) {}

    /// True once the deadline has passed. Call is_over() in a loop, after each unsuccessful poll. If there are fewer
    /// cores than ranks, a long wait sleeps for a moment between polls, because the awaited peer may need this core.
    [[nodiscard]] bool is_over() {
        const double now = steady_seconds();
        left_ -= std::min(now - last_, 0.1);
        last_ = now;
        if (now > asleep_from_ && yields_when_idle()) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        return !(left_ > 0);
    }

private:
    static constexpr double seconds_awake = 0.001;

    double left_;
    double last_;
    double asleep_from_;
};

}  // namespace finch::comm
