#pragma once

#include "finch/base/clock.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace finch::comm {

/// Whether the cores are fewer than the ranks, or the user says so: by OMPI_MCA_mpi_yield_when_idle, as Session has set
/// it.
[[nodiscard]] bool yields_when_idle();

/// How long a rank waits for its peers. Between two looks it counts at most a tenth of a second, so that a process that
/// was suspended itself (by Slurm, by a debugger) blames no rank when it continues.
class Deadline {
public:
    explicit Deadline(double seconds) : left_(seconds), last_(steady_seconds()), asleep_from_(last_ + seconds_awake) {}

    /// To be asked in a loop, after each unsuccessful poll. Where cores are few it sleeps for a moment, once the
    /// wait is long: the peer that is waited for may need this one.
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
