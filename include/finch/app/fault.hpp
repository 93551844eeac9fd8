#pragma once

namespace finch::app {

/// Fault injection for the tests: where FINCH_TEST_SNAPSHOT_DELAY is "WORKER:SECONDS" and names this worker, sleeps so
/// long, as a slow file system would make it.
void delay_snapshot(int worker);

}  // namespace finch::app
