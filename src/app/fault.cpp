#include "finch/app/fault.hpp"

#include "finch/cluster/environment.hpp"

#include <chrono>
#include <csignal>
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

void die_of(search::Id id) {
    const auto wanted = cluster::Environment::of_this_process().text("FINCH_TEST_POISON");
    const std::size_t colon = wanted ? wanted->find(':') : std::string::npos;
    if (colon != std::string::npos && wanted->substr(0, colon) == search::to_text(id)) {
        std::raise(std::stoi(wanted->substr(colon + 1)));
    }
}

std::int64_t test_memory_limit(std::int64_t limit) {
    return cluster::Environment::of_this_process().number("FINCH_TEST_MEMORY_LIMIT").value_or(limit);
}

void fall_deaf(const std::string& where) {
    const auto environment = cluster::Environment::of_this_process();
    const auto rank = environment.text("OMPI_COMM_WORLD_RANK");
    const auto text = environment.text("FINCH_TEST_DEAF");
    while (text && rank && *text == *rank + ":" + where) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
}

}  // namespace finch::app
