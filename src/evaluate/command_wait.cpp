#include "finch/evaluate/command_evaluator.hpp"

#include <algorithm>

namespace finch::evaluate {
namespace {

constexpr double longest_wait = 0.005;    // s; other leaders' messages may wait this long
constexpr double shortest_wait = 0.0005;  // s
constexpr double share_of_wait = 0.001;   // of an evaluation's duration

}  // namespace

double wait_for_programs(double last_evaluation, double youngest_running) {
    return std::clamp(share_of_wait * std::max(last_evaluation, youngest_running), shortest_wait, longest_wait);
}

}  // namespace finch::evaluate
