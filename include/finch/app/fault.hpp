#pragma once

#include <string>

namespace finch::app {

/// Fault injection for the tests: where FINCH_TEST_SNAPSHOT_DELAY is "WORKER:SECONDS" and names this worker, sleeps so
/// long, as a slow file system would make it.
void delay_snapshot(int worker);

/// Fault injection for the tests: where FINCH_TEST_DEAF is "RANK:WHERE" and names this rank of mpirun and `where`,
/// sleeps for ever.
void fall_deaf(const std::string& where);

}  // namespace finch::app
