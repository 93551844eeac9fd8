#include "finch/energy/ledger.hpp"

#include <algorithm>
#include <utility>

namespace finch::energy {
namespace {

constexpr double seconds_between_readings = 1;

}  // namespace

Ledger::Ledger(Meter* meter, std::size_t slots, std::function<double()> clock)
    : meter_(meter), clock_(std::move(clock)), accounts_(slots) {}

void Ledger::begin(std::size_t slot) {
    if (meter_ != nullptr) {
        divide(clock_());
        accounts_.at(slot) = {.energy = {0, meter_->source()}};
    }
}

void Ledger::set_worked(std::size_t slot, double seconds) {
    accounts_.at(slot).worked = seconds;
    if (meter_ == nullptr) {
        return;
    }
    if (const double now = clock_(); now - read_at_ >= seconds_between_readings) {
        divide(now);
    }
}

Energy Ledger::taken(std::size_t slot) {
    if (meter_ != nullptr) {
        divide(clock_());
    }
    return accounts_.at(slot).energy;
}

/// What the meter counted since it was read last.
void Ledger::divide(double now) {
    const std::optional<double> joules = meter_->read(now);
    const bool is_known = joules && last_joules_ && *joules >= *last_joules_;  // less: it was reset
    double worked = 0;
    for (const Account& one : accounts_) {
        worked += one.worked - one.divided;
    }
    const double length = now - read_at_;
    const double counted = is_known ? *joules - *last_joules_ : 0;
    const double late = std::min(std::max(0.0, worked - length), unclaimed_.seconds);
    const double claimed = counted * (worked < length ? worked / length : 1) + late * unclaimed_.watts;
    for (Account& one : accounts_) {
        const double mine = one.worked - std::exchange(one.divided, one.worked);
        if (mine > 0) {
            one.energy = one.energy + (is_known ? Energy{claimed * mine / worked, meter_->source()} : Energy{});
        }
    }
    if (length > 0) {
        const double left = std::clamp(unclaimed_.seconds + length - worked, 0.0, length);
        unclaimed_ = is_known ? Unclaimed{left, counted / length} : Unclaimed{};
    } else {
        unclaimed_.seconds -= late;
    }
    read_at_ = now;
    last_joules_ = joules;
}

}  // namespace finch::energy
