// Measures the cost of one lap of `finch train --profile` on the host: the smallest processor time of ten turns, in ns.
#include "finch/base/format.hpp"
#include "finch/train/profile.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace {

double processor_seconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace

int main() {
    constexpr int laps = 1'000'000;
    finch::train::Profile profile;
    double least = 1e9;
    for (int turn = 0; turn < 10; ++turn) {
        const double begin = processor_seconds();
        for (int lap = 0; lap < laps; lap += 2) {
            profile.enter({finch::backend::Activity::forward});
            profile.enter({finch::backend::Activity::backward});
        }
        least = std::min(least, (processor_seconds() - begin) / laps);
    }
    fmt::print("{:.1f} ns a lap\n", 1e9 * least);
}
