#pragma once

#include "finch/app/opening.hpp"
#include "finch/app/run_context.hpp"

namespace finch::app {

/// Collective over the world. The search itself, once all is open: leaders breed, followers train with them. No rank
/// waits longer than `timeout` seconds for another to begin. Returns the exit code, the same on every rank; leaves the
/// process at once after TERM.
[[nodiscard]] int run_search(const RunContext& context, OpenedRun opened, double timeout);

}  // namespace finch::app
