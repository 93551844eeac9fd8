#include "finch/energy/shares.hpp"

#include "finch/base/clock.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace finch::energy {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr double seconds_between_readings = 60;

}  // namespace

Shares::Shares(Meter* meter, std::size_t slots, std::function<double()> clock)
    : meter_(meter), clock_(std::move(clock)), slots_(slots) {}
Shares::Shares(Meter* meter, std::size_t slots) : Shares(meter, slots, steady_seconds) {}

Shares::Reading Shares::read() {
    read_at_ = clock_();
    return {meter_ != nullptr ? meter_->read(read_at_) : unknown, read_at_, worked_};
}

void Shares::begin(std::size_t slot) {
    slots_.at(slot) = {read(), 0};
}

void Shares::set_worked(std::size_t slot, double seconds) {
    worked_ += seconds - std::exchange(slots_.at(slot).worked, seconds);
    if (clock_() - read_at_ >= seconds_between_readings) {
        static_cast<void>(read());  // before a counter wraps twice
    }
}

double Shares::joules(std::size_t slot) {
    const auto& [begin, worked] = slots_.at(slot);
    const Reading now = read();
    const double counted = now.joules - begin.joules;
    const double divisor = std::max(now.time - begin.time, now.worked - begin.worked);
    if (!(counted >= 0)) {
        return unknown;  // the counter cannot be read, or was reset
    }
    return divisor > 0 ? counted * worked / divisor : 0;
}

}  // namespace finch::energy
