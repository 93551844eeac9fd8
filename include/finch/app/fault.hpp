#pragma once

#include "finch/search/individual.hpp"

#include <cstdint>
#include <string>

namespace finch::app {

/// Fault injection for the tests: where FINCH_TEST_SNAPSHOT_DELAY is "WORKER:SECONDS" and names this worker, sleeps so
/// long, as a slow file system would make it.
void delay_snapshot(int worker);

/// Where FINCH_TEST_POISON is "ID:SIGNAL" and names this individual, sends itself the signal, as an individual would
/// that takes its process down.
void die_of(search::Id id);

/// FINCH_TEST_MEMORY_LIMIT, in bytes, as the limit of a control group that this process is in; `limit` where it is
/// unset.
[[nodiscard]] std::int64_t test_memory_limit(std::int64_t limit);

/// Fault injection for the tests: where FINCH_TEST_DEAF is "RANK:WHERE" and names this rank of mpirun and `where`,
/// sleeps for ever.
void fall_deaf(const std::string& where);

}  // namespace finch::app
