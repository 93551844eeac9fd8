#pragma once

#include "finch/search/individual.hpp"

namespace finch::evaluate {

/// Fault injection for the tests: where FINCH_TEST_SNAPSHOT_DELAY is "WORKER:SECONDS" and names this worker, sleeps so
/// long, as a slow file system would make it.
void delay_snapshot(int worker);

/// Sends a signal to this process if FINCH_TEST_POISON is "ID:SIGNAL" and names this individual: like an individual
/// that ends its process.
void die_of(search::Id id);

}  // namespace finch::evaluate
