#pragma once

#include "finch/search/individual.hpp"

namespace finch::evaluate {

/// Simulates a slow file system in tests. If FINCH_TEST_SNAPSHOT_DELAY is "WORKER:SECONDS" and names this worker,
/// sleeps for that time.
void delay_snapshot(int worker);

/// Simulates an individual that kills its process in tests. If FINCH_TEST_POISON is "ID:SIGNAL" and names this
/// individual, raises the signal.
void die_of(search::Id id);

}  // namespace finch::evaluate
