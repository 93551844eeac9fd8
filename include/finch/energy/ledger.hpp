#pragma once

#include "finch/base/clock.hpp"
#include "finch/energy/meter.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace finch::energy {

/// Divides what a rank's meter counts among its slots. Of an interval between two readings each slot gets the share
///     worked_i / max(length, worked_1 + … + worked_n),
/// so that slots which work at the same time share it, and waiting is nobody's. Work that is told of late, after the
/// reading behind it, is paid from what was left before it.
class Ledger {
public:
    /// `meter` must outlive it; null: nothing is known of any slot. `clock`: steady seconds.
    Ledger(Meter* meter, std::size_t slots, std::function<double()> clock = steady_seconds);

    /// The slot begins something new, which has taken nothing yet.
    void begin(std::size_t slot);
    /// It has worked for `seconds` in all since begin(). Reads the meter where the last reading is a second old.
    void set_worked(std::size_t slot, double seconds);
    /// What it took since begin(), up to now. Reads the meter.
    [[nodiscard]] Energy taken(std::size_t slot);

private:
    struct Account {
        double worked = 0;   ///< seconds since begin()
        double divided = 0;  ///< of them, those before the last reading
        Energy energy{};
    };
    void divide(double now);

    Meter* meter_;
    std::function<double()> clock_;
    std::vector<Account> accounts_;
    /// Busy time before the last interval that no slot has claimed, at most the interval's length.
    struct Unclaimed {
        double seconds = 0;
        double watts = 0;
    };
    Unclaimed unclaimed_;
    double read_at_ = 0;                 ///< steady seconds
    std::optional<double> last_joules_;  ///< read then
};

}  // namespace finch::energy
