#pragma once

#include <cstdint>

namespace finch::app {

/// Fault injection for the tests: where FINCH_TEST_SNAPSHOT_DELAY is "WORKER:SECONDS" and names this worker, sleeps so
/// long, as a slow file system would make it.
void delay_snapshot(int worker);

/// FINCH_TEST_MEMORY_LIMIT, in bytes, as the limit of a control group that this process is in; `limit` where it is
/// unset.
[[nodiscard]] std::int64_t test_memory_limit(std::int64_t limit);

}  // namespace finch::app
