#include "finch/app/fault.hpp"

#include "finch/cluster/environment.hpp"

#include <chrono>
#include <cstdio>
#include <thread>

namespace finch::app {

void delay_snapshot(int worker) {
    const auto text = cluster::Environment::of_this_process().text("FINCH_TEST_SNAPSHOT_DELAY");
    int whose = -1;
    double seconds = 0;
    if (text && std::sscanf(text->c_str(), "%d:%lf", &whose, &seconds) == 2 && whose == worker) {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    }
}

std::int64_t test_memory_limit(std::int64_t limit) {
    return cluster::Environment::of_this_process().number("FINCH_TEST_MEMORY_LIMIT").value_or(limit);
}

}  // namespace finch::app
