#pragma once

#include "finch/app/devices.hpp"
#include "finch/app/startup.hpp"
#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/energy/meter.hpp"

#include <memory>

namespace finch::app {

/// Collective over the world. What tells this rank its joules; null where nothing does, and for functions, which take
/// none. World rank 0 logs what they all have, in one line.
[[nodiscard]] std::unique_ptr<energy::Meter> open_meter(const comm::Session& session, const config::Config& config,
                                                        const Placement& placement, const OpenedDevice& device);

}  // namespace finch::app
