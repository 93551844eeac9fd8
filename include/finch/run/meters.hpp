#pragma once

#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/energy/meter.hpp"
#include "finch/run/devices.hpp"
#include "finch/run/startup.hpp"

#include <memory>

namespace finch::run {

/// Collective over the world. What tells this rank its joules; null if nothing does, and for functions, which take
/// none. World rank 0 logs what they all have, in one line.
[[nodiscard]] std::unique_ptr<energy::Meter> open_meter(const comm::Session& session, const config::Config& config,
                                                        const Placement& placement, const OpenedDevice& device);

}  // namespace finch::run
