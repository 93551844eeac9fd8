#include "finch/energy/energy.hpp"

#include "finch/base/enum_words.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::energy;

TEST_CASE("sums: the same sources stay, different ones are mixed, nothing adds nothing, unknown stays unknown") {
    const Energy gpu{2, Source::measured_gpu};
    const Energy guess{3, Source::estimated};

    CHECK(gpu + gpu == Energy{4, Source::measured_gpu});
    CHECK(gpu + guess == Energy{5, Source::mixed});
    CHECK(nothing + guess == guess);
    CHECK(guess + nothing == guess);
    CHECK(nothing + nothing == nothing);
    for (const Energy& one : {gpu, guess, nothing, Energy{}}) {
        CHECK(!(one + Energy{}).is_known());
        CHECK(std::isnan((Energy{} + one).joules));
    }
}

TEST_CASE("joules as a person reads them") {
    CHECK(joules_text(0) == "0.000 J");
    CHECK(joules_text(0.25) == "0.250 J");
    CHECK(joules_text(12.34) == "12.3 J");
    CHECK(joules_text(1800) == "1.80 kJ");
    CHECK(joules_text(999400) == "999 kJ");
    CHECK(joules_text(1e6) == "0.278 kWh");
    CHECK(joules_text(3.6e6) == "1.00 kWh");
    CHECK(joules_text(4.5e9) == "1250 kWh");
    CHECK(joules_text(Energy{}.joules) == "-");
}
