#include "finch/evaluate/fault.hpp"

#include "finch/cluster/environment.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace finch::evaluate {

void delay_snapshot(int worker) {
    const auto text = cluster::Environment::of_this_process().text("FINCH_TEST_SNAPSHOT_DELAY");
    int whose = -1;
    double seconds = 0;
    if (text && std::sscanf(text->c_str(), "%d:%lf", &whose, &seconds) == 2 && whose == worker) {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    }
}

void die_of(search::Id id) {
    // This calls getenv() because cluster::Environment copies all variables, which takes longer than evaluating a
    // function.
    const char* wanted = std::getenv("FINCH_TEST_POISON");
    const std::string_view text = wanted != nullptr ? wanted : "";
    const std::size_t colon = text.find(':');
    if (colon != std::string_view::npos && text.substr(0, colon) == search::to_text(id)) {
        std::raise(std::stoi(std::string(text.substr(colon + 1))));
    }
}

}  // namespace finch::evaluate
