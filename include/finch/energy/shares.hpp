#pragma once

#include "finch/energy/meter.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace finch::energy {

/// Divides the energy of a rank's meter among the rank's slots. A slot gets this part of the joules since its begin():
///     worked / max(seconds since begin(), seconds that all slots worked since begin()).
/// Slots that work at the same time share the energy. The energy of time in which no slot works belongs to no slot.
class Shares {
public:
    /// `meter` must outlive this object. If `meter` is null, joules() returns NaN. `clock`: steady seconds.
    Shares(Meter* meter, std::size_t slots, std::function<double()> clock);
    Shares(Meter* meter, std::size_t slots);

    /// Starts a new measurement of the slot.
    void begin(std::size_t slot);
    /// Sets the total seconds that the slot has worked since begin().
    void set_worked(std::size_t slot, double seconds);
    /// Returns the slot's part of the joules since begin(), or NaN if the energy is not known.
    [[nodiscard]] double joules(std::size_t slot);

private:
    /// The readings of meter and clock at one moment, and the seconds that all slots together had worked until this
    /// moment.
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
    double read_at_ = 0;  ///< time of the last reading, steady seconds
};

}  // namespace finch::energy
