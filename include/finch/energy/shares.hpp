#pragma once

#include "finch/energy/meter.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace finch::energy {

/// Divides what a rank's meter counts among its slots: of the joules between a slot's begin() and now it gets
///     worked / max(seconds since begin(), seconds that all slots worked since then).
/// So slots that work at once share them, and waiting counts for no slot.
class Shares {
public:
    /// `meter` must outlive it; null: nothing is known. `clock`: steady seconds.
    Shares(Meter* meter, std::size_t slots, std::function<double()> clock);
    Shares(Meter* meter, std::size_t slots);

    /// The slot begins something new.
    void begin(std::size_t slot);
    /// It has worked for `seconds` in all since begin().
    void set_worked(std::size_t slot, double seconds);
    /// Joules since begin(); NaN: not known.
    [[nodiscard]] double joules(std::size_t slot);

private:
    /// The meter and the clock at one moment, and the seconds that all slots had worked.
    struct Reading {
        double joules = 0;
        double time = 0;
        double worked = 0;
    };
    struct Slot {
        Reading begin{};
        double worked = 0;
    };
    [[nodiscard]] Reading read();

    Meter* meter_;
    std::function<double()> clock_;
    std::vector<Slot> slots_;
    double worked_ = 0;   ///< seconds, of all slots
    double read_at_ = 0;  ///< steady seconds
};

}  // namespace finch::energy
