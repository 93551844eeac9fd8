#pragma once

#include "finch/base/clock.hpp"

#include <algorithm>

namespace finch::comm {

/// How long a rank waits for its peers. Between two looks it counts at most a tenth of a second, so that a process that
/// was suspended itself (by Slurm, by a debugger) blames nobody when it goes on.
class Deadline {
public:
    explicit Deadline(double seconds) : left_(seconds), last_(steady_seconds()) {}

    /// To be asked in a loop.
    [[nodiscard]] bool is_over() {
        const double now = steady_seconds();
        left_ -= std::min(now - last_, 0.1);
        last_ = now;
        return !(left_ > 0);
    }

private:
    double left_;
    double last_;
};

}  // namespace finch::comm
