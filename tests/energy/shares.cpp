#include "finch/energy/shares.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace finch::energy;

namespace {

/// A rank with a power of 100 W and two slots. The test sets the clock.
struct World : Meter {
    double now = 1000;
    double watts = 100;
    [[nodiscard]] double read(double time) override { return watts * time; }
    Shares shares{this, 2, [this] { return now; }};
};

}  // namespace

TEST_CASE("joules: a slot that always works gets all joules, however often it asks; waiting time is not charged") {
    World world;
    world.shares.begin(0);
    world.now += 10;
    world.shares.set_worked(0, 10);
    CHECK(world.shares.joules(0) == doctest::Approx(1000));
    CHECK(world.shares.joules(0) == doctest::Approx(1000));
    world.now += 90;
    CHECK(world.shares.joules(0) == doctest::Approx(1000));

    world.shares.begin(0);
    CHECK(world.shares.joules(0) == 0);
}

TEST_CASE("joules: slots that take turns get the joules of their own time; slots that work simultaneously share") {
    for (const double worked : {0.5, 1.0}) {
        World world;
        world.shares.begin(0);
        world.shares.begin(1);
        world.now += 10;
        world.shares.set_worked(0, 10 * worked);
        world.shares.set_worked(1, 10 * worked);
        CHECK(world.shares.joules(0) == doctest::Approx(500));
        CHECK(world.shares.joules(1) == doctest::Approx(500));
    }
}

TEST_CASE("joules: NaN without a meter, if the meter cannot be read, and if its counter was reset") {
    Shares none(nullptr, 1);
    none.begin(0);
    CHECK(std::isnan(none.joules(0)));

    for (const double watts : {std::nan(""), 1.0}) {
        World world;
        world.shares.begin(0);
        world.now += 1;
        world.watts = watts;
        CHECK(std::isnan(world.shares.joules(0)));
    }
}
