// How what a meter counts is divided among the slots of a rank.
#include "finch/energy/ledger.hpp"

#include <array>
#include <doctest/doctest.h>
#include <vector>

using namespace finch::energy;

namespace {

/// A rank whose power is 100 W, on a clock that the test moves.
struct World {
    double now = 1000;
    std::array<double, 3> worked{};
    std::unique_ptr<Meter> meter = make_estimate(100);
    Ledger ledger{meter.get(), 3, [this] { return now; }};

    /// So many seconds in which each of `slots` works this share of the time, and says so a hundred times a second.
    void work(const std::vector<std::size_t>& slots, double seconds, const std::vector<double>& shares) {
        for (const std::size_t slot : slots) {
            if (worked.at(slot) == 0) {
                ledger.begin(slot);
            }
        }
        for (int i = 0; i < 100 * seconds; ++i) {
            now += 0.01;
            for (std::size_t place = 0; place < slots.size(); ++place) {
                double& mine = worked.at(slots[place]);
                ledger.set_worked(slots[place], mine += 0.01 * shares[place]);
            }
        }
    }
    [[nodiscard]] double joules(std::size_t slot) {
        const Energy taken = ledger.taken(slot);
        CHECK(taken.source == Source::estimated);
        return taken.joules;
    }
};

/// A round of reports may fall on both sides of a reading.
doctest::Approx close_to(double value) {
    return doctest::Approx(value).epsilon(0.005);
}

/// What the test says.
struct Counter : Meter {
    double joules = 0;
    [[nodiscard]] Source source() const noexcept override { return Source::measured_cpu; }
    [[nodiscard]] std::optional<double> read(double) override { return joules; }
};

}  // namespace

TEST_CASE("who works all the time has all of it, read however often") {
    World world;
    world.ledger.begin(0);
    for (int i = 1; i <= 100; ++i) {
        world.now += 0.25;
        world.ledger.set_worked(0, 0.25 * i);
    }

    CHECK(world.joules(0) == doctest::Approx(2500));
    CHECK(world.joules(0) == doctest::Approx(2500));
}

TEST_CASE("work that is told of late, after a reading, is paid all the same, and no more than that") {
    World world;
    world.ledger.begin(0);
    for (int i = 1; i <= 3; ++i) {
        world.now += 1;
        world.ledger.set_worked(0, i - 0.5);  // a follower hears of the leader's time a round later
    }
    world.ledger.set_worked(0, 3);
    CHECK(world.joules(0) == doctest::Approx(300));
    world.now += 1;  // it idles, which is not paid
    world.ledger.begin(1);
    world.ledger.set_worked(1, 0.5);  // of nothing before
    world.now += 0.1;
    CHECK(world.ledger.taken(1).joules <= 60);
    CHECK(world.ledger.taken(0).joules == doctest::Approx(300));
}

TEST_CASE("waiting is nobody's: joules are watts times the seconds of work") {
    World world;
    world.ledger.begin(0);
    world.now += 10;
    world.ledger.set_worked(0, 4);
    world.now += 90;

    CHECK(world.joules(0) == doctest::Approx(400));
}

TEST_CASE("slots that take turns have what each worked; slots that work at once share") {
    World turns;
    turns.work({0, 1}, 10, {0.7, 0.3});
    World together;
    together.work({0, 1}, 10, {1, 1});

    CHECK(turns.joules(0) == close_to(700));
    CHECK(turns.joules(1) == close_to(300));
    CHECK(together.joules(0) == close_to(500));
    CHECK(together.joules(1) == close_to(500));
}

TEST_CASE("who comes later shares from then on, and who stays has all of it again") {
    World world;
    world.work({0}, 10, {1});
    world.work({0, 1}, 10, {1, 1});
    const double second = world.joules(1);
    world.work({0}, 10, {1});

    CHECK(world.joules(0) == close_to(2500));
    CHECK(second == close_to(500));
    CHECK(world.joules(1) == close_to(500));
}

TEST_CASE("a slot's next one begins with nothing") {
    World world;
    world.ledger.begin(0);
    world.now += 10;
    world.ledger.set_worked(0, 10);
    world.now += 5;
    world.ledger.begin(0);
    CHECK(world.joules(0) == 0);
    world.now += 2;
    world.ledger.set_worked(0, 1);

    CHECK(world.joules(0) == doctest::Approx(100));
}

TEST_CASE("a counter that jumps is divided by the work between its readings, none of it twice or lost") {
    double now = 0;
    Counter counter;
    Ledger ledger(&counter, 2, [&] { return now; });
    ledger.begin(0);
    ledger.begin(1);
    for (int i = 1; i <= 3000; ++i) {
        now += 0.003;
        counter.joules += i % 100 == 0 ? 30 : 0;
        ledger.set_worked(0, 0.001 * i);
        ledger.set_worked(1, 0.002 * i);
    }

    CHECK(ledger.taken(0).joules + ledger.taken(1).joules == close_to(counter.joules));
    CHECK(ledger.taken(1).joules == close_to(2 * ledger.taken(0).joules));
}

TEST_CASE("a counter that began anew leaves unknown what was worked then") {
    double now = 0;
    Counter counter;
    counter.joules = 100;
    Ledger ledger(&counter, 1, [&] { return now; });
    ledger.begin(0);
    now = 2;
    counter.joules = 5;
    ledger.set_worked(0, 2);

    CHECK(!ledger.taken(0).is_known());
}

TEST_CASE("without a meter nothing is known") {
    Ledger ledger(nullptr, 1);
    ledger.begin(0);
    ledger.set_worked(0, 5);

    CHECK(!ledger.taken(0).is_known());
}
